// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// One published measurement, or one candidate of a published plan, with its fields by their path in the source (`model.layers`, `measured.step_time_s`).
/// What the source leaves out, or gives as null, is absent.
struct Record {
    std::string file; ///< name of the file, without folders
    std::string id;
    std::string
        kind; ///< `training_step`, `collective`, `gemm`, `memory_op`, `layer_time`, `op_times`, `activation_memory`; records of other kinds are not predicted
    std::string sweep = {}; ///< candidates of one sweep that may be compared have the same; empty: none
    bool flagged = false;
    std::string fault = {}; ///< what is wrong with a field, so that the record cannot be predicted; empty: nothing
    std::map<std::string, double, std::less<>> numbers = {}; ///< truth values are 0 and 1
    std::map<std::string, std::string, std::less<>> texts = {};
    struct Point {
        double bytes = 0.0;
        double seconds = 0.0;
    };
    std::vector<Point> points = {}; ///< of a collective

    std::optional<double> number(std::string_view path) const;
    double numberOr(std::string_view path, double otherwise) const;
    std::string text(std::string_view path) const; ///< empty when absent
    bool has(std::string_view path) const;
};

/// MW1774: the record lacks what a prediction needs.
Problem lacking(const std::string& why);

/// The records of a file: an array of published measurements, or `{"records": [...]}` of plans, whose candidates become a record each.
/// Problems: MW1770 it is not JSON, MW1771 it is not a list of records, MW1772 a record without id or kind; those of `readFile`.
Result<std::vector<Record>> readRecords(const std::filesystem::path& path);
Result<std::vector<Record>> parseRecords(std::string_view text, const std::string& file);

/// The record files that the arguments name: files as they are, of folders the `.json` files in them but for `stacks.json`, by name.
/// Problems: MW1773 a path does not exist, or a folder has none.
Result<std::vector<std::filesystem::path>> recordFiles(const std::vector<std::string>& arguments);

} // namespace meshwright::sim
