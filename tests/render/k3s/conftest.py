from tests.k3s_sites import state

__all__ = ["state"]
