// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/global_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

namespace meshwright {

GlobalId GlobalValues::number(std::string description, Shape shape, DType dtype, std::uint64_t varies)
{
    const auto next = static_cast<GlobalId>(m_values.size());
    auto [entry, isNew] = m_numbers.try_emplace(std::move(description), next);
    const auto isOfType = [&](GlobalId id) { return (*this)[id].dtype == dtype && (*this)[id].shape == shape; };
    if (!isNew && !isOfType(entry->second)) // what an op makes may be told by the type of its result alone
        std::tie(entry, isNew) = m_numbers.try_emplace(entry->first + " as " + typeText({dtype, shape}), next);
    if (isNew) {
        GlobalValue& value = m_values.emplace_back();
        value.shape = std::move(shape);
        value.dtype = dtype;
        value.varies = varies;
        value.isInSource = m_isInSource;
    }
    return entry->second;
}

GlobalId GlobalValues::fresh(std::string_view what, Shape shape, DType dtype, std::uint64_t varies)
{
    return number(fmt::format("fresh {} {}", m_values.size(), what), std::move(shape), dtype, varies);
}

GlobalId GlobalValues::changed(GlobalId of, const std::string& change, const DimChange& along, std::uint64_t varies)
{
    const GlobalValue before = (*this)[of]; // a copy: the table grows
    const bool continues = before.base != kNoGlobal && before.change == change && !before.changes.contains(along.dim);
    const GlobalId base = continues ? before.base : of;
    std::map<std::size_t, std::string> changes = continues ? before.changes : std::map<std::size_t, std::string>();
    changes[along.dim] = along.text;
    std::string text = fmt::format("{} {}", change, base);
    for (const auto& [dim, what] : changes)
        text += fmt::format(" {}: {}", dim, what);
    Shape shape = before.shape;
    shape[along.dim] = along.size;
    const GlobalId id = number(std::move(text), std::move(shape), before.dtype, before.varies | varies);
    GlobalValue& made = (*this)[id];
    made.base = base;
    made.change = change;
    made.changes = std::move(changes);
    return id;
}

void GlobalValues::embed(GlobalId of, const Embedding& embedding)
{
    auto& embeddings = (*this)[of].embeddings;
    const auto same = [&](const Embedding& other) {
        return other.whole == embedding.whole && other.dim == embedding.dim && other.at == embedding.at
            && other.start == embedding.start;
    };
    if (std::none_of(embeddings.begin(), embeddings.end(), same))
        embeddings.push_back(embedding);
}

GlobalId GlobalValues::scaled(GlobalId of, double factor)
{
    const GlobalValue before = (*this)[of]; // a copy: the table grows
    const GlobalId base = before.unscaled == kNoGlobal ? of : before.unscaled;
    const double all = before.factor * factor;
    const std::string text = before.dtype == DType::F64 ? fmt::format("{:.13e}", all)
                                                        : fmt::format("{}", static_cast<float>(all)); // but for rounding
    if (std::stod(text) == 1.0)
        return base;
    const GlobalId id = number(fmt::format("scaled {} by {}", base, text), before.shape, before.dtype, before.varies);
    (*this)[id].unscaled = base;
    (*this)[id].factor = all;
    return id;
}

std::size_t GlobalValues::countTerms(GlobalId value) const
{
    const GlobalValue& of = (*this)[value];
    return of.termCount > 0 ? of.termCount : std::max<std::size_t>(1, of.terms.size());
}

std::array<Residue, 2> GlobalValues::hashTerms(GlobalId value) const
{
    const GlobalValue& of = (*this)[value];
    if (of.termCount > 0)
        return of.termHash;
    std::array<Residue, 2> hash = {};
    for (const GlobalId term : of.terms.empty() ? std::vector{value} : of.terms) {
        for (std::uint64_t i = 0; i < hash.size(); ++i)
            hash[i] = plus(hash[i], Hash(i).add(static_cast<std::uint64_t>(term)).residue());
    }
    return hash;
}

GlobalId GlobalValues::sum(GlobalId a, GlobalId b)
{
    constexpr std::size_t kMostTerms = 128; // else a chain of n additions would hold n^2 / 2 of them
    const Shape shape = (*this)[a].shape;
    const DType dtype = (*this)[a].dtype;
    const std::uint64_t varies = (*this)[a].varies | (*this)[b].varies;
    if (const std::size_t count = countTerms(a) + countTerms(b); count > kMostTerms) {
        std::array<Residue, 2> hash = hashTerms(a);
        std::ranges::transform(hash, hashTerms(b), hash.begin(), plus);
        const GlobalId id = number(fmt::format("sum of {}: {}", count, fmt::join(hash, " ")), shape, dtype, varies);
        (*this)[id].termCount = count;
        (*this)[id].termHash = hash;
        return id;
    }
    std::vector<GlobalId> terms;
    for (const GlobalId operand : {a, b}) {
        const auto& own = (*this)[operand].terms;
        if (own.empty())
            terms.push_back(operand);
        else
            terms.insert(terms.end(), own.begin(), own.end());
    }
    joinParts(terms);
    if (terms.size() == 1)
        return terms.front();
    std::sort(terms.begin(), terms.end());
    const GlobalId id = number(fmt::format("sum {}", fmt::join(terms, " ")), shape, dtype, varies);
    (*this)[id].terms = std::move(terms);
    return id;
}

GlobalId GlobalValues::part(GlobalId of, std::set<std::int64_t> parts, std::int64_t count, bool adds)
{
    if (std::ssize(parts) == count)
        return of;
    const GlobalValue whole = (*this)[of];
    const GlobalId id
        = number(fmt::format("parts {} of {} of {}", fmt::join(parts, " "), count, of), whole.shape, whole.dtype, whole.varies);
    GlobalValue& made = (*this)[id];
    made.of = of;
    made.parts = std::move(parts);
    made.partCount = count;
    made.partsAdd = adds;
    return id;
}

/// Different parts of one value, of those that add up, as one term.
void GlobalValues::joinParts(std::vector<GlobalId>& terms)
{
    for (std::size_t i = 0; i < terms.size(); ++i) {
        for (std::size_t j = i + 1; j < terms.size();) {
            const GlobalValue& a = (*this)[terms[i]];
            const GlobalValue& b = (*this)[terms[j]];
            if (!a.partsAdd || !b.partsAdd || a.of != b.of || a.partCount != b.partCount) {
                ++j;
                continue;
            }
            std::set<std::int64_t> parts = a.parts;
            parts.insert(b.parts.begin(), b.parts.end());
            if (parts.size() != a.parts.size() + b.parts.size()) {
                ++j;
                continue;
            }
            terms[i] = part(a.of, std::move(parts), a.partCount, true);
            terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(j));
        }
    }
}

std::optional<double> GlobalValues::numberOf(GlobalId scalar) const
{
    const auto& constant = (*this)[scalar].constant;
    if (!constant || !constant->isSplat())
        return std::nullopt;
    return constant->value.index() == 0 ? std::get<0>(constant->value) : static_cast<double>(std::get<1>(constant->value));
}

std::string GlobalValues::blobText(const std::shared_ptr<const std::string>& blob)
{
    if (blob == nullptr) // elements that the text leaves out may be any
        return fmt::format("elided {}", m_values.size());
    std::size_t i = 0;
    while (i < m_blobs.size() && m_blobs[i] != blob && *m_blobs[i] != *blob)
        ++i;
    if (i == m_blobs.size())
        m_blobs.push_back(blob);
    return fmt::format("blob {}", i);
}

std::string GlobalValues::listText(const std::vector<std::int64_t>& numbers)
{
    constexpr std::size_t kLongest = 64;
    if (numbers.size() <= kLongest)
        return fmt::format("{}", numbers);
    return fmt::format("list {}", m_lists.try_emplace(numbers, m_lists.size()).first->second);
}

GlobalId GlobalValues::scalar(DType dtype, const ConstantData& data)
{
    const auto bitsText = [&](double number) {
        return dtype == DType::F64 ? fmt::format("{:x}", std::bit_cast<std::uint64_t>(number))
                                   : fmt::format("{:x}", std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    };
    std::string value;
    if (const auto* number = std::get_if<double>(&data.value))
        value = isFloating(dtype) ? bitsText(*number) : fmt::format("{}", static_cast<std::int64_t>(*number));
    else if (const auto* integer = std::get_if<std::int64_t>(&data.value))
        value = isFloating(dtype) ? bitsText(static_cast<double>(*integer)) : fmt::format("{}", *integer);
    else
        value = blobText(std::get<2>(data.value));
    const GlobalId id = number(fmt::format("constant {} {}", dtypeName(dtype), value), {}, dtype, 0);
    if (!(*this)[id].constant)
        (*this)[id].constant = data;
    return id;
}

bool GlobalValues::isIdentity(GlobalId scalar, ReduceKind kind) const
{
    if (scalar == kNoGlobal || !(*this)[scalar].constant || !(*this)[scalar].constant->isSplat())
        return false;
    const DType dtype = (*this)[scalar].dtype;
    if (isComplex(dtype) || dtype == DType::Token)
        return false;
    const ConstantData& own = *(*this)[scalar].constant;
    const ConstantAttributes identity = reduceIdentity(kind, dtype);
    if (isFloating(dtype))
        return numberOf(scalar) == std::get<double>(identity.data.value);
    const std::int64_t wanted = std::get<std::int64_t>(identity.data.value);
    if (const auto* number = std::get_if<std::int64_t>(&own.value))
        return *number == wanted;
    return byteSize(dtype) < 8 && std::get<double>(own.value) == static_cast<double>(wanted); // of 8 bytes not all are doubles
}

} // namespace meshwright
