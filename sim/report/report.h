// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "core/support/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace meshwright::sim {

/// A value as people read it and, where it is a number, exactly.
struct ReportValue {
    std::string text = {}; ///< "40.7 ms"
    std::optional<double> number = {}; ///< the same, not rounded, in `unit`; never infinite or not a number
    std::string unit = {}; ///< of the number: "s", "B", "FLOP", "B/s"; empty for counts, fractions and words

    friend bool operator==(const ReportValue&, const ReportValue&) = default;
};

/// One input of a formula, and where it comes from.
struct ReportInput {
    std::string name; ///< the formula's symbol or a word: "t", "peak"
    std::string value;
    std::string source = {}; ///< "catalogue: jax-ml/scaling-book", "mesh", "simulated"

    friend bool operator==(const ReportInput&, const ReportInput&) = default;
};

/// What a figure or a row opens to: why it is so, and how it was computed. All parts may be empty.
struct ReportOpening {
    std::string text = {}; ///< sentences; lines are separated by newlines
    std::string formula = {};
    std::vector<ReportInput> inputs = {};

    bool empty() const { return text.empty() && formula.empty() && inputs.empty(); }
    friend bool operator==(const ReportOpening&, const ReportOpening&) = default;
};

enum class ReportTone : std::uint8_t { Neutral, Good, Warning, Error };
const char* reportToneName(ReportTone tone); ///< "neutral", "good", "warning", "error"

/// One of the answers of the first screen.
struct ReportAnswer {
    std::string id; ///< "fits", "speed", "bound", "next"
    std::string question; ///< "Does it fit?"
    ReportTone tone = ReportTone::Neutral;
    std::string headline; ///< "Yes"
    ReportValue value = {}; ///< the figure beside it: "1.52 of 13.4 GiB"
    std::string sentence = {};
    std::optional<double> share = {}; ///< a part of a whole, drawn as a meter; may be above 1
    std::string command = {}; ///< that does what the answer advises
    ReportOpening opening = {};

    friend bool operator==(const ReportAnswer&, const ReportAnswer&) = default;
};

struct ReportParagraph {
    std::string text;
    ReportTone tone = ReportTone::Neutral;

    friend bool operator==(const ReportParagraph&, const ReportParagraph&) = default;
};

struct ReportFigure {
    std::string label; ///< "Step time"
    ReportValue value;
    ReportOpening opening = {};

    friend bool operator==(const ReportFigure&, const ReportFigure&) = default;
};

struct ReportFigures {
    std::vector<ReportFigure> figures;

    friend bool operator==(const ReportFigures&, const ReportFigures&) = default;
};

struct ReportColumn {
    std::string title;
    bool numeric = false; ///< aligned to the right

    friend bool operator==(const ReportColumn&, const ReportColumn&) = default;
};

struct ReportRow {
    std::vector<ReportValue> cells; ///< as many as the table has columns
    ReportOpening opening = {};

    friend bool operator==(const ReportRow&, const ReportRow&) = default;
};

struct ReportTable {
    std::string title;
    std::vector<ReportColumn> columns; ///< at least one
    std::vector<ReportRow> rows;
    std::string note = {}; ///< below the table

    friend bool operator==(const ReportTable&, const ReportTable&) = default;
};

struct ReportPicture {
    std::string id; ///< of the picture in the report: letters, digits and `-`; no two alike
    std::string title; ///< a few words
    std::string caption = {}; ///< sentences below it
    DisplayList list = {}; ///< coordinates with at most two decimals

    friend bool operator==(const ReportPicture&, const ReportPicture&) = default;
};

/// Pictures that may stand beside each other where there is room.
struct ReportPictures {
    std::vector<ReportPicture> pictures;

    friend bool operator==(const ReportPictures&, const ReportPictures&) = default;
};

/// A problem as a report tells it: no path of the machine in it.
struct ReportProblem {
    Severity severity = Severity::Error;
    std::string id; ///< "MW1104"
    std::string where = {}; ///< "wide_mlp.yaml:13:6, sharding.x"
    std::string message;
    std::string rule = {};
    std::string fix = {};

    friend bool operator==(const ReportProblem&, const ReportProblem&) = default;
};

struct ReportProblems {
    std::vector<ReportProblem> problems;

    friend bool operator==(const ReportProblems&, const ReportProblems&) = default;
};

/// Text to be shown as it stands: a study, a command.
struct ReportCode {
    std::string title;
    std::string text;

    friend bool operator==(const ReportCode&, const ReportCode&) = default;
};

using ReportBlock = std::variant<ReportParagraph, ReportFigures, ReportTable, ReportPictures, ReportProblems, ReportCode>;

struct ReportSection {
    std::string id; ///< "collectives"; letters, digits and `-`; no two alike
    std::string title;
    std::vector<ReportBlock> blocks;

    friend bool operator==(const ReportSection&, const ReportSection&) = default;
};

/// The study that a report is of: opening the report opens it again.
struct ReportedStudy {
    std::string file; ///< its name without folders; empty when it was not read from a file
    std::string text;
    std::vector<std::string> settings; ///< `path=value`, as --set takes them

    friend bool operator==(const ReportedStudy&, const ReportedStudy&) = default;
};

/// What is said of one study: the answers first, then what they rest on. A plain value that pages, printed or on a screen, are made from.
struct Report {
    std::string version; ///< of Meshwright
    std::string title; ///< the study's name
    std::vector<ReportInput> facts; ///< what the study is, in a line: machine, mesh, model, batch; without sources
    std::vector<ReportAnswer> answers;
    std::vector<ReportSection> sections;
    ReportedStudy study;
    std::string command; ///< that writes this report
    std::string trainingResult; ///< `meshwright.training/1`, when training was measured; otherwise empty

    const ReportSection* findSection(std::string_view id) const;
    const ReportAnswer* findAnswer(std::string_view id) const;

    friend bool operator==(const Report&, const Report&) = default;
};

/// One self-contained HTML 5 page in UTF-8: it loads nothing, is whole without JavaScript, follows the reader's light or dark theme, and prints
/// on paper with everything opened. The report itself is embedded (see `readReport`). The same report gives the same bytes.
std::string reportHtml(const Report& report);

/// GitHub's Markdown. Pictures are left out, their captions are not.
std::string reportMarkdown(const Report& report);

/// `section,item,name,value,unit,text`, a row for each answer, figure and cell of a table. `value` is the exact number in SI units, empty for words.
std::string reportCsv(const Report& report);

/// `meshwright.report/1` on one line, display lists included; the same report gives the same bytes. Contains no `<`, so that it can stand in a page.
std::string reportJson(const Report& report);

/// True when a text is meant to be a report, a page or JSON, and no study. It may still be damaged.
bool isReport(std::string_view text);

/// The largest page or JSON that is read, in bytes.
inline constexpr std::size_t kLargestReportBytes = std::size_t{64} << 20;

/// The report that a page of `reportHtml` or a text of `reportJson` holds; `file` is what problems name. Never crashes or hangs, whatever the text.
///
/// Problems: MW1820 the text is not a report, MW1821 it is cut off, MW1822 it is of a newer version, MW1823 a part of it is missing or has the wrong
/// form, MW1824 it is too large or nested too deep.
Result<Report> readReport(std::string_view text, const std::string& file);

} // namespace meshwright::sim
