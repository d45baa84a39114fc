"""What the dispatcher tells about itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.buffers.transit import TransitStatistics
from orchestrator.flow.limiter import LimiterStatistics
from orchestrator.flow.tenants import TenantStatistics
from orchestrator.scheduling.instances import InstanceStatistics
from orchestrator.scheduling.scheduler import SchedulerStatistics
from orchestrator.scheduling.serving import ServiceStatistics


@dataclass(frozen=True, slots=True)
class DispatcherStatistics:
    """`delivered` and `dropped_reports` (late, unknown, of cancelled jobs) count since the start. `instances` are the
    limits of workers, `tenants` what those use whose use is bounded, `transit` the jobs that workers have."""

    scheduler: SchedulerStatistics
    jobs: LimiterStatistics
    sessions: int
    delivered: int
    dropped_reports: int
    lost_workers: int
    transit: TransitStatistics
    instances: Mapping[str, InstanceStatistics] = field(default_factory=dict)
    tenants: TenantStatistics | None = None
    service: ServiceStatistics | None = None
