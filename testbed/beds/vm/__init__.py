"""Virtual machines with a real kernel fabric: SR-IOV by QEMU's igb card, RDMA by Soft-RoCE."""
