# SPDX-License-Identifier: GPL-3.0-or-later
"""What products are told of their precision. Source of the names: jax-ml/jax, jax/_src/lax/lax.py (Precision, DotAlgorithmPreset).

A product of 32-bit operands is rounded to bf16 on a TPU at default precision, and nowhere on a CPU: there all levels give what JAX gives. The levels between
default and highest are computed like the highest."""
import enum

from .machine import machine


class Precision(enum.Enum):
    DEFAULT, HIGH, HIGHEST = 0, 1, 2

    def __str__(self):
        return self.name


_LEVELS = {"default": False, "fastest": False, "bfloat16": False, "high": True, "tensorfloat32": True, "bfloat16_3x": True, "highest": True, "float32": True,
           Precision.DEFAULT: False, Precision.HIGH: True, Precision.HIGHEST: True}  # whether operands stay as they are
_PRESETS = {"DEFAULT": None, "BF16_BF16_BF16": "bf16", "BF16_BF16_F32": "bf16", "F16_F16_F16": "f16", "F16_F16_F32": "f16", "BF16_BF16_F32_X3": None, "BF16_BF16_F32_X6": None,
            "BF16_BF16_F32_X9": None, "TF32_TF32_F32_X3": None, "F32_F32_F32": None, "F64_F64_F64": None}  # what operands are rounded to
_REFUSED = ("TF32_TF32_F32", "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM")
DotAlgorithmPreset = enum.Enum("DotAlgorithmPreset", [*_PRESETS, *_REFUSED])
DEFAULTS = ("default", "high", "highest", "bfloat16", "tensorfloat32", "float32", *[name for name in (*_REFUSED, *_PRESETS) if name != "DEFAULT"])


def operand_dtype(dtype, precision):
    """What operands of a type are rounded to. ValueError: no precision."""
    if precision is None:
        precision = machine.matmul_precision
    if isinstance(precision, (tuple, list)) and len(precision) == 2:
        precision = next((one for one in precision if _LEVELS.get(one)), precision[0])
    name = precision.name if isinstance(precision, DotAlgorithmPreset) else precision
    if name is None or name == "DEFAULT" or isinstance(name, (str, Precision)) and _LEVELS.get(name) is False:
        return machine.product_dtype(dtype)
    if isinstance(name, (str, Precision)) and name in _LEVELS:
        return dtype
    if name in _REFUSED:
        raise NotImplementedError(f"products by the algorithm {name}")
    if isinstance(name, str) and name in _PRESETS:
        return _PRESETS[name] or dtype if dtype == "f32" else dtype
    raise ValueError("Precision argument must be one of:\n- None,\n"
                     f"- a string in {[one for one in _LEVELS if isinstance(one, str)]},\n- a lax.Precision value,\n- a tuple of two lax.Precision values or strings,\n"
                     f"- a lax.DotAlgorithmPreset or the name of one of these presets;\nbut got {precision}")
