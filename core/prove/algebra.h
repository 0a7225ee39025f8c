// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/prove/residue.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace meshwright {

/// An element of an array, at a random point: every number that the inputs do not determine beforehand is a polynomial of random numbers, modulo a prime.
struct Element {
    Residue residue = 0;
    std::int64_t number = 0; ///< the number itself, where it is the same for every input
    std::uint32_t degree = 0; ///< of the polynomial, at most
    bool isKnown = false; ///< `number` is; of floating types only whole numbers that they hold exactly
    bool isFinite = true; ///< where all inputs are: 0 times it is 0
};
using Elements = std::vector<Element>;

/// Computes with such elements. Sums, differences, products and selections are polynomials of their operands; maxima, minima and bitwise ops are sets of
/// what they are of; any other function is a random one of its operands (`opaque`). Two elements are equal when they are the same polynomial of the same
/// unknowns; if they are not, they are equal by chance alone, once in 2^40 or less.
/// Source: Schwartz, "Fast probabilistic algorithms for verification of polynomial identities", J. ACM 1980; uninterpreted functions as in Ackermann's
/// reduction.
class Algebra {
public:
    explicit Algebra(std::uint64_t seed)
        : m_seed(seed)
    {
    }

    static Element known(std::int64_t number, DType dtype); ///< wrapped to the type
    Element constant(double number, DType dtype) const;
    Element fresh(); ///< an unknown, unlike all others
    Elements fresh(std::int64_t count);

    /// A random function, by its name and what it is of.
    Hash function(std::string_view name) const;
    Hash function(const Op& op) const; ///< by its attributes, but for those that say shapes
    static Element opaque(const Hash& hash, bool isFinite = false) { return {hash.residue(), 0, 1, false, isFinite}; }

    Element add(const Element& a, const Element& b, DType dtype) const;
    Element subtract(const Element& a, const Element& b, DType dtype) const;
    Element multiply(const Element& a, const Element& b, DType dtype) const;
    Element select(const Element& predicate, const Element& a, const Element& b) const;
    Element convert(const Element& from, DType type, DType to) const;

    /// What a reduction begins with.
    Element identity(ReduceKind kind, DType dtype) const;

    /// The reduction of some elements, in any order.
    Element combined(ReduceKind kind, std::span<const Element> parts, DType dtype);

    /// An element-wise op on elements of the types `types`; `meaning` is `function(op)`, computed once for all elements.
    Element elementwise(
        const Op& op, const Hash& meaning, std::span<const Element> operands, std::span<const DType> types, DType result);

private:
    using Members = std::shared_ptr<const Elements>;

    /// A sum or a difference with this residue. Of what may be infinite, terms that cancel out need not be 0.
    Element sumOf(const Element& a, const Element& b, Residue sum) const;
    Element extreme(ReduceKind kind, std::span<const Element> parts, DType dtype);
    std::optional<Element> ofKnown(const Op& op, std::span<const Element> operands, DType type, DType result) const;
    Element quotient(const Element& a, const Element& b, DType dtype) const;

    std::uint64_t m_seed;
    std::uint64_t m_drawn = 0;
    std::array<std::map<Residue, Members>, 4> m_sets; ///< of maxima, minima, conjunctions, disjunctions, by their residue
    std::int64_t m_members = 0; ///< of all of them
};

} // namespace meshwright
