#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the losses of tst_pytorch_losses.cpp, as PyTorch computes them: an MLP with ReLU from numbers that any program can make exactly.
usage: pytorch_losses.py   (needs python3-torch; made with PyTorch 1.13.0 of Debian 12, on the CPU, in f32)"""
import torch

LAYERS, BATCH, STEPS = [8, 16, 12, 4], 16, 8
torch.set_num_threads(1)


def numbers(count, seed, scale):
    """Multiples of scale / 64 between -scale and scale."""
    return torch.tensor([scale * ((i * 37 + seed * 11 + i * i * 5) % 127 - 63) / 64 for i in range(count)], dtype=torch.float32)


def parameters():
    made = []
    for i, (rows, columns) in enumerate(zip(LAYERS, LAYERS[1:])):
        made.append(numbers(rows * columns, 2 * i, 0.5).reshape(rows, columns))
        made.append(numbers(columns, 2 * i + 1, 0.25))
    return [p.clone().requires_grad_() for p in made]


def losses(make, kind):
    params = parameters()
    x = numbers(BATCH * LAYERS[0], 20, 1.0).reshape(BATCH, -1)
    y = numbers(BATCH * LAYERS[-1], 21, 1.0).reshape(BATCH, -1)
    if kind == "cross entropy":
        y = torch.nn.functional.one_hot(torch.arange(BATCH) % LAYERS[-1], LAYERS[-1]).float()
    optimizer = make(params)
    result = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        h = x
        for i in range(len(LAYERS) - 1):
            h = h @ params[2 * i] + params[2 * i + 1]
            if i + 2 < len(LAYERS):
                h = torch.relu(h)
        if kind == "cross entropy":
            loss = -(y * torch.log_softmax(h, 1)).sum(1).mean()
        else:
            loss = ((h - y) ** 2).sum(1).mean()
        loss.backward()
        optimizer.step()
        result.append(f"{loss.item():.9g}")
    return ", ".join(result)


for name, make in {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
}.items():
    for kind in ("sum squared", "cross entropy"):
        print(f"{name}, {kind}: {losses(make, kind)}")
