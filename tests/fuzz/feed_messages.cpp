// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/explain_message.h"

#include "tests/fuzz/targets.h"

namespace meshwright::fuzz {

/// Messages of JAX, XLA and PyTorch as people paste them; a first line `mesh: x=4,y=2` says what the reader knows of the mesh.
void feedMessages(std::string_view text)
{
    ExplainContext context;
    constexpr std::string_view kMesh = "mesh: ";
    if (text.starts_with(kMesh)) {
        const auto mesh = parseMesh(takeLine(text).substr(kMesh.size()));
        if (mesh)
            context.mesh = *mesh;
    }
    const ExplainedText explained = explainText(text, context);
    require(explained.messages.size() <= ExplainedText::kMostMessages, "no more messages than are promised");
    for (const Explanation& message : explained.messages) {
        require(!message.kind.empty() && !message.meaning.empty(), "what is known is explained");
        require(!message.lines.empty() && message.lines.front() <= explained.lineCount, "a message is on a line of the text");
    }
    (void)explainedText(explained, 80);
}

} // namespace meshwright::fuzz
