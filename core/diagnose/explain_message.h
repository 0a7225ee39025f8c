// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/diagnose/layout_change.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshwright {

/// What the reader of a message knows and the message may not say.
struct ExplainContext {
    std::optional<Mesh> mesh = {};
    std::optional<Shape> shape = {}; ///< of the array that the message is about
};

/// Something that the message says: {"array", "f32[16,16,16], 16.0 KiB"}.
struct MessageFact {
    std::string name;
    std::string value;
};

/// A way out, with code (of JAX or PyTorch, or a command) that does it; the code may be empty.
struct Remedy {
    std::string text;
    std::string code = {};
};

/// A layout that a message describes.
struct PicturedLayout {
    Shape shape;
    TensorSharding sharding;
    Mesh mesh;
};

/// Where an array, or something else that has devices, lies.
struct MessagePicture {
    std::string title; ///< "before: P('y', None, 'x')"
    std::string drawing; ///< lines ended by newlines
    std::optional<PicturedLayout> layout = {}; ///< the same, for who draws it otherwise
};

/// One message of JAX, XLA, PyTorch, NCCL or the operating system, explained.
struct Explanation {
    std::string kind; ///< "full-rematerialization": stable, for scripts
    std::string source; ///< who says it: "XLA", "JAX", "PyTorch"
    std::string title; ///< a few words
    std::string quote; ///< the beginning of the message as it stands
    std::string meaning;
    std::vector<MessageFact> facts;
    std::vector<MessagePicture> pictures;
    std::optional<LayoutChange> change; ///< where the message is about one
    std::vector<Remedy> remedies;
    std::vector<std::size_t> lines; ///< of the log, from 1, at which the message begins; the first kMostLines of them
    std::size_t times = 1; ///< how often it is in the log

    static constexpr std::size_t kMostLines = 8;

    /// Adds a fact, if there is one.
    void fact(std::string name, std::string value)
    {
        if (!value.empty())
            facts.push_back({std::move(name), std::move(value)});
    }

    /// Adds a way out; the best first.
    void remedy(std::string text, std::string code = {}) { remedies.push_back({std::move(text), std::move(code)}); }
};

/// A text in which messages were looked for.
struct ExplainedText {
    std::vector<Explanation> messages; ///< by their first lines; equal ones once
    std::size_t lineCount = 0;
    std::size_t leftOut = 0; ///< different messages beyond the first kMostMessages
    bool cut = false; ///< more than kMostExplainedBytes: the rest was not read
    std::string nearest; ///< when nothing was found: the kind of message with most words in common, if there is any

    static constexpr std::size_t kMostMessages = 40;
};
inline constexpr std::size_t kMostExplainedBytes = std::size_t{64} << 20;

/// Finds the known messages in a text, a log of any length, and explains each. Any bytes are allowed.
/// What is not known is left out: an answer without messages says so.
ExplainedText explainText(std::string_view text, const ExplainContext& context = {});

/// A kind of message that `explainText` knows.
struct KnownMessage {
    std::string kind;
    std::string source;
    std::string title;
};
std::vector<KnownMessage> knownMessages();

/// The answer as text for a terminal of `width` columns; drawings and code are kept as they are.
std::string explainedText(const ExplainedText& explained, std::size_t width);

} // namespace meshwright
