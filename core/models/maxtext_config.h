// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// True for a model's file of MaxText (`configs/models/*.yml`): a line sets `base_emb_dim`.
bool isMaxTextConfig(std::string_view text);

/// The fields of such a file under the names that Hugging Face's configurations have for them, as `readByFields` takes them. Read are lines of
/// `key: value` that are not indented; what is said of experts, latent attention and windows counts where MaxText would use it (more than one expert,
/// `attention_type: mla`, a window above 0). `notes` gets the keys with numbers that are left out.
/// Source of the names and of their meaning: AI-Hypercomputer/maxtext, src/MaxText/configs/base.yml.
nlohmann::json fieldsOfMaxText(std::string_view text, std::vector<std::string>& notes);

} // namespace meshwright
