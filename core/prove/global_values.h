// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/prove/residue.h"
#include "core/prove/standing.h"

#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace meshwright {

/// Adds a number to a description. Descriptions are made for every op: this is quicker than a format.
inline void addNumber(std::string& text, std::int64_t number)
{
    std::array<char, 24> digits{};
    text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

/// A value that has elements of another one along one dimension, as they come: element start + t * stride of that one is its element at + t, for
/// t = 0 .. count - 1. All its other elements along the dimension are the filler, if there is one.
struct Embedding {
    GlobalId whole = kNoGlobal; ///< the value that has the elements
    std::size_t dim = 0;
    std::int64_t start = 0;
    std::int64_t stride = 1;
    std::int64_t count = 0;
    std::int64_t at = 0;
    GlobalId filler = kNoGlobal; ///< a scalar
    bool isOfSeveral = false; ///< a concatenation: its dimensions are those of the op, in their order
};

struct GlobalValue {
    Shape shape;
    DType dtype = DType::F32;
    std::uint64_t varies = 0; ///< mesh axes along which the value inside a manual computation may differ, as bits
    bool isInSource = false; ///< the source program has it
    std::optional<ConstantData> constant; ///< of a scalar
    GlobalId unscaled = kNoGlobal; ///< of a value that is a constant times another one: that one
    double factor = 1.0; ///< the constant
    std::vector<GlobalId> terms; ///< of a sum: what is added up, in the order of their numbers; empty: of a sum of very many too
    std::size_t termCount = 0; ///< of a sum of very many: how many
    std::array<Residue, 2> termHash = {}; ///< of such a sum: the sums of two hashes of its terms
    GlobalId of = kNoGlobal; ///< of a value that is made by parts (`part`): the value
    std::set<std::int64_t> parts; ///< those of it that this one has
    std::int64_t partCount = 0; ///< of how many
    bool partsAdd = false; ///< all parts add up to the value
    std::vector<Embedding> embeddings; ///< what of the source program is made of its elements
    std::string reshaped; ///< of a reshape: what has the same elements in the same order, and is none itself
    std::string copies; ///< of an array of copies: the text of what is copied (`Framed`); else empty
    GlobalId copied = kNoGlobal; ///< of an array of copies: what is copied
    std::vector<int> copiedFrom; ///< by its dimension: that of what is copied; -1: the elements along it are copies
    GlobalId base = kNoGlobal; ///< of a value that `changed` made
    std::string change; ///< what all its changes do
    std::map<std::size_t, std::string> changes; ///< by dimension
};

/// One change of `GlobalValues::changed`: of a dimension, to another size.
struct DimChange {
    std::size_t dim = 0;
    std::string text;
    std::int64_t size = 0;
};

/// Values by what they are: an op, its attributes, and the values that it is applied to. Equal descriptions have one number, so that two ops that
/// compute the same of the same are the same value. A description says everything that the op's result depends on.
class GlobalValues {
public:
    /// The value of this description. `varies` is a property of the description.
    GlobalId number(std::string description, Shape shape, DType dtype, std::uint64_t varies);

    /// The number of a description that has one.
    GlobalId find(const std::string& description) const
    {
        const auto found = m_numbers.find(description);
        return found == m_numbers.end() ? kNoGlobal : found->second;
    }

    /// A value that equals no other one.
    GlobalId fresh(std::string_view what, Shape shape, DType dtype, std::uint64_t varies);

    const GlobalValue& operator[](GlobalId id) const { return m_values[static_cast<std::size_t>(id)]; }
    GlobalValue& operator[](GlobalId id) { return m_values[static_cast<std::size_t>(id)]; }

    /// A value that is cut, padded or reversed along one dimension. Changes of one kind along different dimensions commute: they have one
    /// number in whatever order they are made.
    GlobalId changed(GlobalId of, const std::string& change, const DimChange& along, std::uint64_t varies = 0);

    /// Notes that `whole` is made of elements of a value of the source program.
    void embed(GlobalId of, const Embedding& embedding);

    /// Whether arrays of copies have been numbered (`filled`).
    void noteFilled() { m_hasFilled = true; }
    bool hasFilled() const { return m_hasFilled; }

    /// What is numbered from now on belongs to the source program, or not.
    void setInSource(bool isInSource) { m_isInSource = isInSource; }
    std::size_t count() const { return m_values.size(); }

    /// A constant as a scalar: one number for each element type and value. The elements of others are known by their bytes.
    GlobalId scalar(DType dtype, const ConstantData& data);
    std::string blobText(const std::shared_ptr<const std::string>& blob);

    /// A list of numbers as a text that is the same for the same list: the numbers, or of a long one which list it is.
    std::string listText(const std::vector<std::int64_t>& numbers);

    /// A value times a constant. Constants that follow each other are one.
    GlobalId scaled(GlobalId of, double factor);

    /// A sum of two values of one shape: of all their terms, in whatever order they were added. Very many are known by their hashes: two
    /// different sums are taken for one with a chance of 2^-122.
    GlobalId sum(GlobalId a, GlobalId b);

    /// What `parts` of `count` make of a value, which all of them together make: by adding up where `adds`, else in a way of their own.
    GlobalId part(GlobalId of, std::set<std::int64_t> parts, std::int64_t count, bool adds);

    /// A constant that is a number; nothing for other values.
    std::optional<double> numberOf(GlobalId scalar) const;

    /// True for constants that change nothing when they are combined with another value.
    bool isIdentity(GlobalId scalar, ReduceKind kind) const;
    bool isZero(GlobalId scalar) const { return isIdentity(scalar, ReduceKind::Sum); }

private:
    std::size_t countTerms(GlobalId value) const;
    std::array<Residue, 2> hashTerms(GlobalId value) const;
    void joinParts(std::vector<GlobalId>& terms);

    std::vector<GlobalValue> m_values;
    std::unordered_map<std::string, GlobalId> m_numbers;
    std::vector<std::shared_ptr<const std::string>> m_blobs;
    std::map<std::vector<std::int64_t>, std::size_t> m_lists;
    bool m_isInSource = true;
    bool m_hasFilled = false;
};

} // namespace meshwright
