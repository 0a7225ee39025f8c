// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright::cli {

/// A program's values by the names that users know.
class ProgramValues {
public:
    explicit ProgramValues(const Program& program);

    /// A value of one of the functions.
    struct Found {
        std::size_t function = 0;
        ValueId value;
    };

    /// By its name, or by what it is called in the text, with or without the percent sign.
    std::optional<Found> find(const std::string& wanted) const;
    /// MW1923, with the nearest name.
    Problem noSuchValue(const std::string& wanted) const;

    /// What it is called in the text: `%3`; empty for values of dead ops.
    const std::string& text(std::size_t function, ValueId value) const { return m_texts[function][value.at()]; }
    /// `act.h1 (%3)`, or what there is of it.
    std::string title(std::size_t function, ValueId value) const;

private:
    const Program& m_program;
    std::vector<std::vector<std::string>> m_texts; ///< of each function
};

} // namespace meshwright::cli
