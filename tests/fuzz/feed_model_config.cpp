// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/transformer_config.h"

#include "tests/fuzz/targets.h"

namespace meshwright::fuzz {

/// The config.json of a Hugging Face model.
void feedModelConfig(std::string_view text)
{
    const auto config = readTransformerConfig(text, "fuzz.json");
    require(config.has_value() || !config.error().front().message.empty(), "what is refused is refused with a reason");
}

} // namespace meshwright::fuzz
