"""The generated code is what the generator makes of the .proto."""

import subprocess
import sys
from pathlib import Path

from orchestrator.transports.rpc.service import SERVICE
from orchestrator.transports.rpc.v1 import chorale_pb2 as pb

ROOT = Path(__file__).parents[3]
FOLDER = Path("orchestrator/transports/rpc/v1")


def test_generated_code_is_that_of_the_proto(tmp_path: Path) -> None:
    """Generated again, every file is the same to the byte: `make proto` was not forgotten."""
    subprocess.run(
        [
            sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT}", f"--python_out={tmp_path}",
            f"--pyi_out={tmp_path}", f"--grpc_python_out={tmp_path}", str(ROOT / FOLDER / "chorale.proto"),
        ],
        check=True,
    )  # fmt: skip
    made = {path.name: path.read_bytes() for path in (tmp_path / FOLDER).iterdir()}
    assert set(made) == {"chorale_pb2.py", "chorale_pb2.pyi", "chorale_pb2_grpc.py"}
    kept = {name: (ROOT / FOLDER / name).read_bytes() for name in made}
    assert made == kept, "run make proto"


def test_package_is_versioned_and_its_service_is_the_one_that_is_served() -> None:
    """What clients call by name: package, service and methods."""
    (service,) = pb.DESCRIPTOR.services_by_name.values()
    assert service.full_name == SERVICE == "chorale.v1.Sessions"
    assert set(service.methods_by_name) == {"Converse", "Watch", "Create", "Get", "End", "Send"}
