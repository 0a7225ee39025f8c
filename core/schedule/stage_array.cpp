// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/stage_array.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace meshwright {

namespace {

using Kind = StageArray::Kind;

/// Whether something stands behind the word.
enum class Behind : std::uint8_t { Nothing, Name, Number };

struct Word {
    Kind kind;
    std::string_view text;
    Behind behind;
};

constexpr std::string_view kOfStage = "stage.";
constexpr std::string_view kShared = "shared.";
constexpr std::string_view kNames = ":";

constexpr std::array kWords = {Word{Kind::Gradient, "grad.", Behind::Name}, Word{Kind::GradientSum, "acc.", Behind::Name},
    Word{Kind::SharedPart, kShared, Behind::Name}, Word{Kind::Input, "in", Behind::Nothing},
    Word{Kind::Output, "out", Behind::Nothing}, Word{Kind::InputGradient, "ct.in", Behind::Nothing},
    Word{Kind::OutputGradient, "ct.out", Behind::Nothing}, Word{Kind::WeightResidual, "residual.w.", Behind::Number},
    Word{Kind::Residual, "residual.", Behind::Number}, Word{Kind::NormPart, "norm.part", Behind::Nothing},
    Word{Kind::NormSquared, "norm.squared", Behind::Nothing}, Word{Kind::DropoutOn, "dropout.on", Behind::Nothing},
    Word{Kind::DropoutPart, "dropout.part", Behind::Nothing}};

constexpr std::array<std::string_view, 2> kBatch = {"x", "y"};
constexpr std::array<std::string_view, 3> kMetrics = {"loss", "accuracy", "predictions"};

template <std::size_t N>
bool isIn(const std::array<std::string_view, N>& words, std::string_view word)
{
    return std::find(words.begin(), words.end(), word) != words.end();
}

std::optional<StageArray> read(const Word& word, std::string_view name)
{
    if (word.behind == Behind::Nothing)
        return name == word.text ? std::optional(StageArray{word.kind}) : std::nullopt;
    if (!name.starts_with(word.text))
        return std::nullopt;
    const std::string rest(name.substr(word.text.size()));
    if (word.behind == Behind::Name)
        return StageArray{word.kind, rest};
    const std::size_t colon = std::min(rest.find(kNames), rest.size());
    const auto number = parseInteger(rest.substr(0, colon));
    return number
        ? std::optional(StageArray{word.kind, rest.substr(std::min(colon + 1, rest.size())), static_cast<std::size_t>(*number)})
        : std::nullopt;
}

} // namespace

std::string StageArray::text() const
{
    if (kind == Kind::SharedCopy)
        return fmt::format("{}{}.{}{}", kOfStage, number, kShared, name);
    for (const Word& word : kWords) {
        if (word.kind == kind)
            return word.behind == Behind::Number ? fmt::format("{}{}{}{}", word.text, number, name.empty() ? "" : kNames, name)
                                                 : std::string(word.text) + name;
    }
    return name;
}

StageArray stageArrayOf(std::string_view name)
{
    for (const Word& word : kWords) {
        if (auto array = read(word, name))
            return *std::move(array);
    }
    if (isIn(kBatch, name))
        return {Kind::Batch, std::string(name)};
    if (isIn(kMetrics, name))
        return {Kind::Metric, std::string(name)};
    if (name.starts_with(kOfStage)) {
        const std::string_view rest = name.substr(kOfStage.size());
        const std::size_t dot = rest.find('.');
        const auto stage = parseInteger(std::string(rest.substr(0, dot)));
        if (stage && dot != std::string_view::npos && rest.substr(dot + 1).starts_with(kShared))
            return {Kind::SharedCopy, std::string(rest.substr(dot + 1 + kShared.size())), static_cast<std::size_t>(*stage)};
    }
    return {Kind::Model, std::string(name)};
}

} // namespace meshwright
