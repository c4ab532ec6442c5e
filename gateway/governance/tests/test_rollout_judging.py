"""What a session says of the version that served it, and what it does not."""

from gateway.governance.rollout_judging import ArmStats, Sample

WELL = Sample(succeeded=True, fell_back=False, work_ms=100.0)
FAILED_FAST = Sample(succeeded=False, fell_back=False, work_ms=1.0)


def test_failing_fast_makes_no_version_faster() -> None:
    """A candidate that failed half of its sessions at once was the faster one."""
    stats = ArmStats().plus(WELL, alpha=0.01)
    after = stats.plus(FAILED_FAST, alpha=0.01)
    assert after.latency == stats.latency
    assert (after.success.total, after.success.hits) == (2, 1)


def test_a_session_without_a_reward_is_no_session_with_a_reward_of_nothing() -> None:
    stats = ArmStats().plus(WELL, alpha=0.01)
    assert stats.reward == ArmStats().reward
