// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/hardware/chip.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// What a name of the catalogue stands for.
struct ChipMatch {
    const Chip* chip
        = nullptr; ///< never null in a result; lives as long as the catalogue. Of an instance: the chip as it stands in it
    std::optional<std::int64_t> devices; ///< set when the name means that many devices of one chip (`tpu-v3-core`)
    std::string approximation; ///< what the name leaves open and how it was taken; empty when nothing
    std::optional<std::int64_t>
        chips; ///< of the machine that the name means (`p5.48xlarge`, `ct5lp-hightpu-4t`); nothing: it means a chip
};

/// The chips that are known, read from a file; see resources/hardware/README.md for its format.
class Catalogue {
public:
    /// Problems: MW1702 the file is not a catalogue (not JSON, no `chips`, a figure that is not a number, an alias to nothing); all that
    /// are found are reported, each with its path in the document. And those of `readFile`.
    static Result<Catalogue> load(const std::filesystem::path& path);

    /// The same from text; `file` is what problems name.
    static Result<Catalogue> parse(std::string_view text, const std::string& file);

    /// The chip of this key or alias, or an instance (`p5.48xlarge`, `GB200 NVL72`), without regard to case.
    /// Problems: MW1701 there is none, with the nearest name.
    Result<ChipMatch> find(std::string_view name) const;
    /// Whether there is one.
    bool knows(std::string_view name) const;

    /// The chip that a driver's name for a device means (`NVIDIA A100-SXM4-80GB`): the longest key or alias of a GPU that is a word of it. Null:
    /// none is.
    const Chip* ofDevice(std::string_view device) const;

    /// In the order of their keys.
    const std::vector<Chip>& chips() const { return m_chips; }

    /// The machines that people name in place of their chips: clouds' instances and vendors' racks, in the order of the file.
    const std::vector<Chip>& instances() const { return m_instances; }

    /// Every key, alias and instance, sorted.
    std::vector<std::string> names() const;

private:
    struct Alias {
        std::size_t chip = 0; ///< index into m_instances, or else into m_chips
        std::optional<std::int64_t> devices = {};
        std::string approximation = {};
        bool isInstance = false;
        std::optional<std::int64_t> chips = {}; ///< of a machine type; an instance has its own
    };
    const Chip& chipOf(const Alias& alias) const { return (alias.isInstance ? m_instances : m_chips)[alias.chip]; }

    std::vector<Chip> m_chips;
    std::vector<Chip> m_instances;
    std::map<std::string, Alias, std::less<>> m_names; ///< lower case; keys are aliases of themselves
};

} // namespace meshwright::sim
