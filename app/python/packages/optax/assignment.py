# SPDX-License-Identifier: GPL-3.0-or-later
"""Assignments of rows to columns with the least cost."""
import jax.numpy as jnp
import numpy as np
from jax._src.arrays import ConcreteArray


def hungarian_algorithm(costs):
    """Rows and the columns that they get, by shortest augmenting paths; of arrays outside of programs."""
    if not isinstance(jnp.asarray(costs), ConcreteArray):
        raise NotImplementedError("optax.assignment.hungarian_algorithm of a traced array")
    cost = np.asarray(costs, np.float64)
    turned = cost.shape[0] > cost.shape[1]
    cost = cost.T if turned else cost
    rows, columns = cost.shape
    u, v, of = np.zeros(rows + 1), np.zeros(columns + 1), np.zeros(columns + 1, int)
    for row in range(1, rows + 1):
        of[0], column = row, 0
        least, way, used = np.full(columns + 1, np.inf), np.zeros(columns + 1, int), np.zeros(columns + 1, bool)
        while True:
            used[column] = True
            i = of[column]
            free = ~used[1:]
            now = cost[i - 1] - u[i] - v[1:]
            better = free & (now < least[1:])
            least[1:][better], way[1:][better] = now[better], column
            following = int(np.argmin(np.where(free, least[1:], np.inf))) + 1
            delta = least[following]
            u[of[used]] += delta
            v[used] -= delta
            least[1:][free] -= delta
            column = following
            if of[column] == 0:
                break
        while column:
            of[column], column = of[way[column]], way[column]
    pairs = sorted((of[column] - 1, column - 1) for column in range(1, columns + 1) if of[column])
    if turned:
        pairs = sorted((b, a) for a, b in pairs)
    return jnp.asarray(np.array([a for a, _ in pairs], np.int32)), jnp.asarray(np.array([b for _, b in pairs], np.int32))


base_hungarian_algorithm = hungarian_algorithm
