// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/lemmas.h"

#include "core/program/attention.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

namespace meshwright {

namespace {

/// A letter for each dimension of each operand and result: dimensions of one letter go together. s: queries, t: keys, g: groups of heads, h: heads of a
/// group, d: sizes of queries and keys, e: of values; digits: the batch.
struct Letters {
    Letters(const AttentionForm& form, const AttentionPlaces& places, std::size_t batchDims, bool isGradient)
    {
        std::string batch;
        for (std::size_t dim = 0; dim < batchDims; ++dim)
            batch += static_cast<char>('0' + dim);
        const std::string made = batch + "sghe";
        const std::string rows = batch + "sgh";
        operands = {batch + "sghd", batch + "tgd", batch + "tge"};
        results = {made, rows};
        if (form.causal)
            operands.insert(operands.end(), {"s", "t"});
        if (form.windowed)
            operands.emplace_back();
        if (form.segmented)
            operands.insert(operands.end(), {batch + "s", batch + "t"});
        if (places.before != places.end)
            operands.insert(operands.end(), {made, rows});
        if (isGradient) {
            results = {operands[0], operands[1], operands[2]};
            operands.insert(operands.end(), {made, rows, made});
        }
    }

    std::vector<std::string> operands;
    std::vector<std::string> results;
};

/// Where a letter's pieces are told by: copies may be taken to be pieces of any kind.
struct Reference {
    std::size_t operand = 0;
    std::size_t dim = 0;
};

std::map<char, Reference> referencesOf(const std::vector<Framed>& operands, const Letters& letters)
{
    std::map<char, Reference> references;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        for (std::size_t dim = 0; dim < letters.operands[i].size(); ++dim) {
            const auto [found, isNew] = references.try_emplace(letters.operands[i][dim], Reference{i, dim});
            const Reference& known = found->second;
            if (!isNew && operands[known.operand].isCopy(known.dim) && !operands[i].isCopy(dim))
                found->second = {i, dim};
        }
    }
    return references;
}

bool isNeededWhole(char letter)
{
    return letter == 't' || letter == 'd' || letter == 'e';
}

/// What some of the keys make of attention: those of the device so many pieces before, of as many pieces as the axes make of queries and keys.
struct KeyPart {
    std::int64_t piece = 0;
    std::int64_t count = 1;
};

/// How many pieces before its own each device has the piece that a dimension is split into; nothing where that differs between devices.
std::optional<std::int64_t> piecesBefore(const Framed& array, std::size_t dim)
{
    const std::int64_t count = shardCount(array.dims[dim].axes);
    const std::int64_t size = array.local[dim];
    if (size * count != array.shape[dim])
        return std::nullopt;
    const auto& window = array.dims[dim].window;
    if (!window)
        return 0;
    std::optional<std::int64_t> before;
    for (std::int64_t piece = 0; piece < count; ++piece) {
        const std::vector<Run>& runs = (*window)[static_cast<std::size_t>(piece)];
        if (std::ssize(*window) != count || runs.size() != 1 || runs[0].at != 0 || runs[0].length != size
            || runs[0].start % size != 0)
            return std::nullopt;
        const std::int64_t here = (piece - runs[0].start / size + count) % count;
        if (before && *before != here)
            return std::nullopt;
        before = here;
    }
    return before;
}

/// Nothing, and a refusal: the operands have no such part.
std::optional<KeyPart> keyPart(Site& site, const std::vector<Framed>& operands, const Letters& letters)
{
    const std::size_t sequence = letters.operands[0].find('s');
    const Framed& queries = operands[0];
    std::optional<KeyPart> part;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const std::size_t dim = letters.operands[i].find('t');
        if (dim == std::string::npos)
            continue;
        const auto before = operands[i].isCopy(dim) ? std::nullopt : piecesBefore(operands[i], dim);
        if (!before || operands[i].mesh != queries.mesh || operands[i].dims[dim].axes != queries.dims[sequence].axes
            || !queries.isEven(sequence) || queries.isCopy(sequence))
            return site.refuse(fmt::format("the keys in operand {} are not a part like the queries'", i));
        if (part && part->piece != *before)
            return site.refuse(fmt::format("the keys in operand {} are of another device than those before", i));
        part = KeyPart{*before, shardCount(queries.dims[sequence].axes)};
    }
    return part;
}

/// What the results of an op are, by its operands.
std::string resultText(std::size_t result, const std::string& operands)
{
    return fmt::format("attention {} {}", result, operands);
}

/// The parts of a result that the part before has; nothing, and a refusal, where it is of something else.
std::optional<std::set<std::int64_t>> partsBefore(
    Site& site, const AttentionPlaces& places, const std::vector<Framed>& operands, const std::string& text, KeyPart part)
{
    if (places.before == places.end)
        return std::set<std::int64_t>();
    const GlobalValues& globals = site.walk.globals;
    const GlobalValue& before = globals[operands[places.before].global];
    for (const std::size_t result : {std::size_t{0}, std::size_t{1}}) {
        const GlobalValue& one = globals[operands[places.before + result].global];
        if (one.of == kNoGlobal || one.of != globals.find(resultText(result, text)) || one.partCount != part.count || one.partsAdd
            || one.parts != before.parts || one.parts.contains(part.piece))
            return site.refuse("what it takes in is not a result over other keys");
    }
    return before.parts;
}

} // namespace

/// Each query of each head is computed apart, with all keys of its group. The cotangents of keys and values are sums over queries, and over the heads of
/// a group: where these are split, partial ones. Of part of the keys, it makes a part of the result.
std::optional<Standing> attentionLemma(Site& site, std::size_t result)
{
    const auto form = attentionForm(site.op.as<OtherAttributes>());
    if (!form || site.local(0).size() < 4)
        return site.refuse("its attributes are not followed");
    const bool isGradient = site.op.kind == OpKind::AttentionGrad;
    const AttentionPlaces places(*form, site.op.kind);
    const Letters letters(*form, places, site.local(0).size() - 4, isGradient);
    std::vector<Framed> operands;
    for (std::size_t i = 0; i < site.operands.size(); ++i) {
        operands.push_back(framed(site, i));
        if (!operands.back().partial.empty())
            return site.refuse(fmt::format("operand {} is a partial result", i));
    }
    std::optional<KeyPart> part;
    if (form->isPart()) {
        part = keyPart(site, operands, letters);
        if (!part)
            return std::nullopt;
    }
    const std::map<char, Reference> references = referencesOf(operands, letters);
    std::string text = attributesTextWithout(site.walk, site.op, attributesOfExchange());
    std::uint64_t varies = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        Framed& operand = operands[i];
        for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
            const char letter = letters.operands[i][dim];
            const Reference& reference = references.at(letter);
            if (isNeededWhole(letter) && !(letter == 't' && part)) {
                if (operand.isCopy(dim)) {
                    operand.shape[dim] = operand.local[dim];
                    operand.dims[dim].axes.clear();
                }
                if (!operand.isWhole(dim))
                    return site.refuse(fmt::format("operand {} is split along dimension {}, which it needs whole", i, dim));
                continue;
            }
            const Framed first = operands[reference.operand];
            adopt(operand, dim, first, reference.dim);
            if (!sameAlong(operand, dim, first, reference.dim))
                return site.refuse(fmt::format("operands {} and {} are split differently", reference.operand, i));
        }
        varies |= site.walk.globals[operand.global].varies;
        if (i < places.before || i >= places.end)
            text += operand.text();
    }
    const std::string& made = letters.results[result];
    const Shape& local = site.localResult(result);
    Shape shape = local;
    std::vector<StandingDim> dims(local.size());
    for (std::size_t dim = 0; dim < local.size(); ++dim) {
        const Reference& reference = references.at(made[dim]);
        if (isNeededWhole(made[dim]) && !(made[dim] == 't' && part))
            continue;
        shape[dim] = operands[reference.operand].shape[reference.dim];
        dims[dim] = operands[reference.operand].dims[reference.dim];
        dims[dim].fill = kNoGlobal;
    }
    // It is computed in a wide type, and rounded where it is complete.
    const DType wide = site.dtype(result) == DType::F64 ? DType::F64 : DType::F32;
    GlobalId global = site.walk.globals.number(resultText(result, text), shape, wide, varies);
    if (part) {
        auto parts = partsBefore(site, places, operands, text, *part);
        if (!parts)
            return std::nullopt;
        parts->insert(part->piece);
        global = site.walk.globals.part(global, std::move(*parts), part->count, isGradient);
    }
    Standing standing = convertedStanding(site.walk, standingOf(global, shape, dims, local, site.mesh()), site.dtype(result));
    for (const char summed : {'s', 'h'}) {
        if (made.find(summed) != std::string::npos || (summed == 's' && part)) // parts of keys have their own addends
            continue;
        const Reference& reference = references.at(summed);
        const Framed& operand = operands[reference.operand];
        if (!operand.isEven(reference.dim))
            return site.refuse(fmt::format("dimension {} of operand {} ends in padding", reference.dim, reference.operand));
        const AxisRefs& axes = operand.dims[reference.dim].axes;
        if (!disjoint(standing.partial, axes) || !disjoint(placeAxes(standing), axes))
            return site.refuse("an axis splits two of its dimensions");
        standing.partial.insert(standing.partial.end(), axes.begin(), axes.end());
    }
    standing.partial = canonicalSet(standing.partial);
    standing.kind = ReduceKind::Sum;
    return standing;
}

} // namespace meshwright
