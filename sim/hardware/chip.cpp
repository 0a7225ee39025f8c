// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/chip.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::sim {

const char* chipClassName(ChipClass chipClass)
{
    switch (chipClass) {
    case ChipClass::Tpu:
        return "tpu";
    case ChipClass::Gpu:
        return "gpu";
    case ChipClass::Cpu:
        return "cpu";
    }
    return "";
}

const char* mathFormatName(MathFormat format)
{
    switch (format) {
    case MathFormat::Fp32:
        return "fp32";
    case MathFormat::Tf32:
        return "tf32";
    case MathFormat::Bf16:
        return "bf16";
    case MathFormat::Fp16:
        return "fp16";
    case MathFormat::Fp8:
        return "fp8";
    case MathFormat::Int8:
        return "int8";
    case MathFormat::Fp4:
        return "fp4";
    }
    return "";
}

std::optional<MathFormat> mathFormatNamed(std::string_view name)
{
    const auto found = std::ranges::find(kMathFormats, name, mathFormatName);
    return found == kMathFormats.end() ? std::nullopt : std::optional(*found);
}

double bytesPerElement(MathFormat format)
{
    switch (format) {
    case MathFormat::Fp32:
    case MathFormat::Tf32:
        return 4.0;
    case MathFormat::Bf16:
    case MathFormat::Fp16:
        return 2.0;
    case MathFormat::Fp8:
    case MathFormat::Int8:
        return 1.0;
    case MathFormat::Fp4:
        return 0.5;
    }
    return 0.0;
}

namespace {

std::optional<MatmulRate> listedRate(const Chip& chip, MathFormat format)
{
    const auto found = chip.peakFlopsPerSecond.find(format);
    if (found == chip.peakFlopsPerSecond.end())
        return std::nullopt;
    return MatmulRate{
        found->second.value / static_cast<double>(chip.devicesPerChip), fmt::format("{} peak", mathFormatName(format))};
}

/// The formats to try, in order, for operands of `format` that the chip takes as they are.
std::vector<MathFormat> widerFormats(MathFormat format)
{
    using enum MathFormat;
    switch (format) {
    case Fp4:
        return {Fp4, Fp8, Bf16, Fp16, Fp32};
    case Fp8:
        return {Fp8, Bf16, Fp16, Fp32};
    case Int8:
        return {Int8, Bf16, Fp16, Fp32};
    case Bf16:
        return {Bf16, Fp32};
    case Fp16:
        return {Fp16, Bf16, Fp32};
    case Tf32:
    case Fp32:
        return {Fp32};
    }
    return {};
}

std::optional<MatmulRate> firstListed(const Chip& chip, MathFormat format)
{
    for (const MathFormat candidate : widerFormats(format)) {
        if (auto rate = listedRate(chip, candidate)) {
            if (candidate != format)
                rate->how += fmt::format(" ({} has no rate of its own)", mathFormatName(format));
            return rate;
        }
    }
    return std::nullopt;
}

} // namespace

std::optional<MatmulRate> matmulRate(const Chip& chip, MathFormat format, MatmulPrecision precision)
{
    const bool wide = format == MathFormat::Fp32 || format == MathFormat::Tf32;
    if (!wide)
        return firstListed(chip, format);
    if (format == MathFormat::Tf32)
        precision = MatmulPrecision::Default;
    if (chip.chipClass == ChipClass::Tpu) {
        auto rate = listedRate(chip, MathFormat::Bf16);
        if (!rate)
            return listedRate(chip, MathFormat::Fp32);
        const int passes = precision == MatmulPrecision::Default ? 1 : precision == MatmulPrecision::High ? 3 : 6;
        rate->flopsPerSecond /= passes;
        rate->how = passes == 1 ? "bf16 peak: 32-bit operands are rounded to bf16 at default precision"
                                : fmt::format("bf16 peak / {0}: 32-bit operands in {0} passes", passes);
        return rate;
    }
    if (precision != MatmulPrecision::Highest) {
        if (auto rate = listedRate(chip, MathFormat::Tf32))
            return rate;
    }
    return firstListed(chip, MathFormat::Fp32);
}

} // namespace meshwright::sim
