// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/hardware/catalogue.h"
#include "sim/search/transformer_space.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// What the command line says of a search, as text.
struct SearchWords {
    std::string model; ///< a Hugging Face config.json, or the name of one that comes with Meshwright
    std::vector<std::string> hardware; ///< "v5e-64", "h100x64", "v5e-256x2" (slices), or a chip alone with `chips`
    std::string chips; ///< "64" or "16..256" (doubled from one to the other); empty: as `hardware` says
    std::string tokens; ///< of a step: "1M"; empty: by the batch
    std::string sequence; ///< "4096" or "4k"
    std::string globalBatch; ///< sequences of a step; empty: by the tokens
    std::string format = "bf16"; ///< of the products
    std::string recipe = {}; ///< of 8-bit products: "delayed" and so on, which makes `format` fp8
    std::string stack = {}; ///< as a study's; empty: the usual one on each chip
    std::vector<std::string> prices; ///< dollars an hour for each chip: one for all machines, or one each
};

/// A model by its configuration's file, or by its name among those that come with Meshwright. `notes`, if any, gets what of it is left out, `ignored` the
/// numbers whose meaning is not known. Problems: those of `readModelFile`, `readTransformerConfig` and `transformerProblems`.
Result<TransformerConfig> modelNamed(const std::string& name, std::vector<std::string>* notes, std::vector<std::string>& ignored);

/// A count with a unit (`parseCount` of core/support): `4k` is 4,096, `0.5M` 524,288, `2G` 2^31, as batches are counted.
/// Problems: MW1935 it is no such number, or outside of 1 to 2^40.
Result<std::int64_t> parseCount(std::string_view text, std::string_view what);

/// `notes`, if any, gets what of the model's file is left out.
/// Problems: those of `readFile` and `readTransformerConfig`, `transformerProblems`; MW1935 sizes; MW1936 tokens that are not a whole number of sequences, or
/// not exactly one of tokens and batch; MW1903 an unknown number format.
Result<SearchWork> workOf(const SearchWords& words, std::vector<std::string>* notes = nullptr);

/// The names in lists with commas between them, as `--hw` takes several machines.
std::vector<std::string> machineTexts(const std::vector<std::string>& lists);

/// The machines, in the order given; with a range of chips each of them at every count.
/// A name says its number of chips as `readMachineName` has it. `notes` gets what a name was taken for.
/// Problems: those of `readMachineName`; MW1937 no count of chips, a name that has none, or chips that fill no whole number of instances; MW1747 more chips than 131,072 or than the largest slice; MW1709 the
/// catalogue has no figure that is needed; MW1939 prices.
Result<std::vector<SearchMachine>> machinesOf(
    const SearchWords& words, const Catalogue& catalogue, const Calibration& calibration, std::vector<std::string>& notes);

/// So many chips in as few equal slices as there must be, as a person names them: "v4-6144x2", whose numbers count cores. More chips where no such slices
/// are sold.
std::string joinedSlices(const Chip& chip, std::int64_t chips);

/// A machine of so many chips, with what a stack makes of them (as `Calibration::stackFor` takes it). Problems: MW1747, MW1709 as above.
Result<SearchMachine> machineOf(
    const Chip& chip, std::int64_t chips, std::int64_t slices, const Calibration& calibration, std::string_view stack = {});

/// The chips of each host where `chips` fill all of them alike and so many share the fast links.
std::int64_t chipsOfHost(std::int64_t chips, std::int64_t fastDomain);

/// Chips along each axis of a slice: the most compact of so many.
std::vector<std::int64_t> compactTopology(std::int64_t chips, std::int64_t rank);

/// Chips of the same class whose devices have more memory, the least first, for as many chips.
std::vector<SearchMachine> largerMachines(
    const SearchMachine& machine, const Catalogue& catalogue, const Calibration& calibration);

/// The words of a plan's name: "zero-1", "tensor=8", "recompute=full" of "ZeRO-1 + TP 8, recompute=full"; "data=8", "tensor=4" of "dp8tp4".
std::vector<std::string> planWords(const std::string& text);

/// `tensor=8,zero=3`, any number of times, and as people name plans: `FSDP2`, `HSDP`, `ZeRO-1 + TP 8`, `Megatron` (`3D`), `2D`, `tp=8 pp=4
/// dp=16`, `TP8 PP4`, `dp8tp4`, `dp_shard=8,tp=8`. Beside such a name
/// axes that are not named are 1. Problems: MW1938 a name or a value that is not known, a name twice.
Result<std::vector<FixedChoice>> parseFixed(std::span<const std::string> texts);

} // namespace meshwright::sim
