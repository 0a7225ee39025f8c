// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/message_kind.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

/// What two shapes of one array differ in.
std::string shapeDifference(const Shape& wanted, const Shape& stored)
{
    if (wanted.size() != stored.size())
        return fmt::format(" One has {} dimensions and the other {}.", wanted.size(), stored.size());
    std::string text;
    for (std::size_t dim = 0; dim < wanted.size(); ++dim) {
        const std::int64_t large = std::max(wanted[dim], stored[dim]);
        const std::int64_t small = std::min(wanted[dim], stored[dim]);
        if (large == small)
            continue;
        text += fmt::format(" Dimension {} is {} in the program and {} in the checkpoint", dim, wanted[dim], stored[dim]);
        text += small > 0 && large % small == 0 ? fmt::format(", a factor of {}.", large / small) : ".";
    }
    return text;
}

constexpr const char* kOtherConfiguration = "Build the model with the configuration that the checkpoint was saved with (hidden "
                                            "size, layers, heads, padded vocabulary).";

/// "Requested shape: (1024, 512) is not compatible with the stored shape: (512, 512). Truncating/padding is disabled .."
bool explainStoredShape(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    constexpr std::size_t kFurthest = 200;
    constexpr std::string_view kRequested = "requestedshape:";
    const auto stored = part.bracketed("storedshape:", at);
    const std::size_t least = at - std::min(at, kFurthest);
    const auto requested = part.bracketed(kRequested, least);
    const auto wantedShape = requested ? shapeIn(*requested) : std::nullopt;
    const auto storedShape = stored ? shapeIn(*stored) : std::nullopt;
    out.meaning
        = "The program asks for an array of another shape than the checkpoint has. Shapes are those of whole arrays, so the "
          "mesh and the shardings are not the reason.";
    if (wantedShape && storedShape) {
        out.fact("in the program", shapeText(*wantedShape));
        out.fact("in the checkpoint", shapeText(*storedShape));
        out.meaning += shapeDifference(*wantedShape, *storedShape);
    }
    out.remedy(kOtherConfiguration);
    if (wantedShape && wantedShape->empty() && storedShape && storedShape->size() == 1)
        out.remedy(
            "A scalar that was saved with one value for each device (a step or a loss scale under pmap) has this shape. Restore "
            "only the parameters, or take its first value.");
    out.remedy("Where the rest is padding, let Orbax cut the array or fill it with zeros:",
        "args = ocp.ArrayRestoreArgs(sharding=sharding,\n    global_shape=shape, strict=False)\n");
    return true;
}

/// "size mismatch for layers.0.w: copying a param with shape torch.Size([512, 64]) from checkpoint, the shape in current model is
/// torch.Size([256, 64])."
bool explainLoadedShape(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto stored = part.bracketed("withshapetorch.size(", at);
    const auto wanted = part.bracketed("currentmodelistorch.size(", at);
    const auto storedShape = stored ? shapeIn(*stored) : std::nullopt;
    const auto wantedShape = wanted ? shapeIn(*wanted) : std::nullopt;
    const std::size_t least = at - std::min<std::size_t>(at, 300);
    const auto name = part.between("sizemismatchfor", ":", least, 200);
    if (name)
        out.fact("parameter", std::string(*name));
    out.meaning = "The model has a parameter of another shape than the checkpoint.";
    if (wantedShape && storedShape) {
        out.fact("in the program", shapeText(*wantedShape));
        out.fact("in the checkpoint", shapeText(*storedShape));
        out.meaning += shapeDifference(*wantedShape, *storedShape);
        out.meaning
            += " A factor that is the size of tensor parallelism means that one of the two is a rank's shard and the other "
               "the whole parameter.";
    }
    out.remedy(kOtherConfiguration);
    out.remedy(
        "Load a checkpoint of shards with the degrees that it was saved with, or through a format that knows whole tensors:",
        "torch.distributed.checkpoint.load(state, checkpoint_id=path)\n");
    return true;
}

} // namespace

std::span<const MessageKind> checkpointMessageKinds()
{
    static const std::vector<MessageKind> kKinds = {
        {"checkpoint-shapes-differ", "Orbax", "an array of another shape than the checkpoint has",
            {"isnotcompatiblewiththestoredshape"}, explainStoredShape, 300},
        {"checkpoint-shapes-differ", "PyTorch", "a parameter of another shape than the checkpoint has",
            {"copyingaparamwithshape"}, explainLoadedShape},
    };
    return kKinds;
}

} // namespace meshwright
