// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/collective_library.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// A number of the catalogue and where it was found.
struct Figure {
    double value = 0.0; ///< in the unit of the field that holds it
    std::string source;
    std::string note = {};
};
using OptionalFigure = std::optional<Figure>; ///< nothing: unknown

enum class ChipClass : std::uint8_t { Tpu, Gpu, Cpu };

/// "tpu", "gpu" or "cpu".
const char* chipClassName(ChipClass chipClass);

/// The number formats for which chips state a rate of their own.
enum class MathFormat : std::uint8_t { Fp32, Tf32, Bf16, Fp16, Fp8, Int8, Fp4 };
inline constexpr std::array kMathFormats = {
    MathFormat::Fp32, MathFormat::Tf32, MathFormat::Bf16, MathFormat::Fp16, MathFormat::Fp8, MathFormat::Int8, MathFormat::Fp4};

/// "fp32", "tf32", "bf16", "fp16", "fp8", "int8" or "fp4".
const char* mathFormatName(MathFormat format);
/// The inverse; nothing for other words.
std::optional<MathFormat> mathFormatNamed(std::string_view name);

/// The bytes of one element as it lies in memory (tf32: 4; fp4: 0.5).
double bytesPerElement(MathFormat format);

/// How much of the precision of 32-bit operands a product keeps: `jax.lax.Precision`.
enum class MatmulPrecision : std::uint8_t { Default, High, Highest };

/// When an axis of a torus slice closes to a ring.
enum class WrapRule : std::uint8_t {
    Never,
    FullPod, ///< all axes, when each is as long as in the largest slice
    FullAxis, ///< an axis that is as long as in the largest slice
    CubesOf4, ///< an axis whose length is a multiple of 4, when no axis is shorter than 4
};

enum class InterconnectKind : std::uint8_t {
    Torus, ///< links between neighbours along each axis
    Switch, ///< NVSwitch, or a network of links that is taken as one
    FullMesh, ///< one link between every two
    Pcie, ///< a PCIe tree, taken as a switch
};

struct Interconnect {
    InterconnectKind kind = InterconnectKind::Switch;
    std::string kindText; ///< as the catalogue has it, `torus_3d` say
    std::int64_t torusRank = 0; ///< 2 or 3 for a torus, else 0
    WrapRule wrapRule = WrapRule::Never;
    std::string wrapText = {}; ///< the same in prose
    OptionalFigure linksPerChip = {};
    OptionalFigure linkBytesPerSecond = {}; ///< one link, one direction
    OptionalFigure totalBytesPerSecond = {}; ///< all links of one chip, one direction (GPUs)
    OptionalFigure achievableFraction = {}; ///< of the total, that a ring collective reaches (GPUs)
    OptionalFigure hopLatencySeconds = {}; ///< one hop on a torus, one step of a ring through a switch
    OptionalFigure onChipLinkBytesPerSecond = {}; ///< between the two devices of one chip, one direction
    bool reducesInSwitch = false; ///< the switch itself adds up (NVLS), all-reduce only
    std::shared_ptr<const CollectiveLibrary> library = {}; ///< what moves collectives; null: the links alone count
    std::string note = {};
};

/// What a GPU's kernels reach, by how they are written: figures of the generation that the catalogue names for the chip.
struct KernelFigures {
    std::string generation = {}; ///< as the catalogue calls it: `hopper`; empty: it names none
    std::optional<double> fillDepth = {}; ///< of k, that a product's tile loses to filling its pipeline (16-bit operands); > 0

    /// Of the bf16 peak, that fused attention over long rows reaches; 0 .. 1.
    struct AttentionShare {
        double forward = 0.0;
        double backward = 0.0;
    };
    std::map<std::string, AttentionShare> attention = {}; ///< by kernel: "flash1", "flash2"
};

/// One entry of the catalogue. Rates and sizes are those of a whole chip; a device has 1 / devicesPerChip of them.
struct Chip {
    std::string key; ///< `tpu-v5e`; of a chip in an instance, the chip's
    std::string instance
        = {}; ///< the machine that its network and hosts are those of: `p5.48xlarge`; empty: no machine in particular
    std::int64_t instanceChips = 1; ///< of one such machine, >= 1
    std::string name; ///< `TPU v5e`
    std::string vendor;
    ChipClass chipClass = ChipClass::Gpu;
    std::int64_t devicesPerChip = 1; ///< how many devices JAX shows a chip, >= 1
    bool slicesCountCores = false; ///< the names of its slices count TensorCores, two a chip: a v4-128 has 64 chips

    std::map<MathFormat, Figure> peakFlopsPerSecond; ///< dense, a multiply-add is two
    std::set<MathFormat> unsupported; ///< formats without a fast path
    OptionalFigure achievableMatmulFraction; ///< of the bf16 peak, measured
    OptionalFigure matrixUnit; ///< side of the systolic array, when listed
    OptionalFigure multiprocessors; ///< SMs or compute units
    KernelFigures kernels; ///< empty: unknown

    OptionalFigure hbmBytes;
    OptionalFigure hbmBytesPerSecond;
    OptionalFigure onchipBytes; ///< VMEM of a TPU, L2 of a GPU

    Interconnect interconnect;
    std::vector<std::int64_t> maxSlice; ///< chips along each axis of the largest slice; empty when not known
    std::optional<std::int64_t> maxSliceChips; ///< chips in the largest slice
    std::vector<std::int64_t> hostShape; ///< chips of one host along each axis; empty when not known
    std::optional<std::int64_t> chipsPerHost;
    std::optional<std::int64_t> fastDomain; ///< GPUs that share the fast links
    OptionalFigure dcnBytesPerSecond; ///< network between slices, one way, per chip
    OptionalFigure hostLinkBytesPerSecond; ///< to the host's memory, one way, per chip
    OptionalFigure nicBytesPerSecond; ///< network between hosts, one way, per GPU
    OptionalFigure networkLatencySeconds; ///< one step of a ring over that network
    OptionalFigure tdpWatts;
    OptionalFigure dollarsPerHour; ///< of one chip, >= 0; the catalogue that comes along has none: prices age

    /// What the catalogue finds this very entry by.
    const std::string& catalogueName() const { return instance.empty() ? key : instance; }
};

/// A rate of products and how it was come by, for reports.
struct MatmulRate {
    double flopsPerSecond = 0.0; ///< of one device, peak
    std::string how; ///< `bf16 peak`, `bf16 peak / 6: 32-bit operands in 6 passes`
};

/// The peak rate of matrix products of one device of the chip, with the one policy for what the catalogue does not list:
/// - TPU, 32-bit operands: the matrix unit multiplies bf16. Default precision rounds the operands (1 pass, the bf16 rate), High takes
///   3 passes and Highest 6, each at the bf16 rate. Source: jax.lax.Precision; openxla/xla documents BF16_BF16_F32_X3 and _X6.
/// - GPU, 32-bit operands: Default and High use tf32 where the chip has it, as XLA does; Highest uses fp32.
/// - tf32 means fp32 at Default precision.
/// - A format without a fast path or without a figure runs at the rate of the next wider one that has a figure:
///   fp4 -> fp8 -> bf16, int8 -> bf16, bf16 <-> fp16, bf16 and fp16 -> fp32.
/// Nothing when no figure applies.
std::optional<MatmulRate> matmulRate(const Chip& chip, MathFormat format, MatmulPrecision precision = MatmulPrecision::Default);

} // namespace meshwright::sim
