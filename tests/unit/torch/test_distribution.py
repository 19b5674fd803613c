"""`DistributedDataParallel`: two processes train through a rule, and agree."""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import pullback as pb

WORLD = 2


@pb.custom_gradient
def square(x):
    y = x * x

    def grad(dy):
        return 2 * dy * x

    return y, grad


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 2)
        self.scale = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return square(self.inner(x)) * pb.scale_gradient(self.scale, 0.5)


def model():
    torch.manual_seed(0)
    return Model()


def batch(rank):
    return torch.arange(12.0).reshape(4, 3)[2 * rank : 2 * rank + 2] / 10


def worker(rank, port, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    parallel = torch.nn.parallel.DistributedDataParallel(model())
    parallel(batch(rank)).sum().backward()
    results[rank] = [p.grad.tolist() for p in parallel.parameters()]
    dist.destroy_process_group()


def test_the_gradients_of_two_processes_are_averaged():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with mp.Manager() as manager:
        results = manager.dict()
        mp.spawn(worker, (port, results), nprocs=WORLD)
        got = [results[rank] for rank in range(WORLD)]
    alone = model()
    sum(alone(batch(rank)).sum() for rank in range(WORLD)).div(WORLD).backward()
    want = [p.grad for p in alone.parameters()]
    for found in got:
        for a, b in zip(found, want):
            torch.testing.assert_close(torch.tensor(a), b)
