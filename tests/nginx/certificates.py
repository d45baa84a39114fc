"""An authority of its own, and a certificate that it signs: some clients take no certificate that signs itself."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256


@dataclass(frozen=True)
class Certificates:
    """Files: the authority's certificate, the server's (for localhost), and the server's key."""

    authority: Path
    chain: Path
    key: Path


def certificates(folder: Path) -> Certificates:
    """Makes them."""
    files = Certificates(folder / "authority.pem", folder / "chain.pem", folder / "key.pem")
    authority, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    pem = serialization.Encoding.PEM
    files.authority.write_bytes(_signed("A test's authority", authority, authority).public_bytes(pem))
    files.chain.write_bytes(_signed("localhost", own, authority).public_bytes(pem))
    files.key.write_bytes(
        own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


def _signed(
    name: str, key: ec.EllipticCurvePrivateKey, authority: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    """Returns a certificate of `key`; the authority's own if it is the authority's key."""
    is_authority = key is authority
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named("A test's authority"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(
            x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True
        )
        .sign(authority, SHA256())
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
