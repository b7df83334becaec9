"""Runs on a virtual machine: connects a queue pair of a device from one of its GIDs to a peer's; prints how it went.

queue_pair.py DEVICE GID-INDEX PEER-GID
"""

import os
import sys

import pyverbs.enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr

device, index, peer = sys.argv[1], int(sys.argv[2]), sys.argv[3]
context = Context(name=device)
queue = CQ(context, 4)
room = QPCap(max_send_wr=1, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
pair = QP(PD(context), QPInitAttr(qp_type=e.IBV_QPT_RC, scq=queue, rcq=queue, cap=room))
pair.to_init(QPAttr(port_num=1))
attr = QPAttr(port_num=1)
attr.ah_attr = AHAttr(gr=GlobalRoute(dgid=GID(peer), sgid_index=index, hop_limit=64), is_global=1, port_num=1)
attr.dest_qp_num = pair.qp_num
attr.path_mtu = e.IBV_MTU_1024
attr.min_rnr_timer = 12
attr.max_dest_rd_atomic = 1
try:
    pair.to_rtr(attr)
except PyverbsRDMAError as error:
    print(os.strerror(error.error_code))
else:
    print("connected")
