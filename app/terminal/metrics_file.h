// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/file.h"
#include "core/train/trainer.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace meshwright::cli {

/// A file of metrics as training goes on: a line of `meshwright.metrics/1` for each step, there as soon as the step is done. A run that goes on from a
/// checkpoint keeps the lines of the steps before it and writes the others anew.
class MetricsFile {
public:
    /// `path`: `-` is standard output, empty is none. `resumes`: lines may be there. Problems: MW1005 it cannot be written.
    static Result<std::unique_ptr<MetricsFile>> open(const std::string& path, bool resumes);

    /// What goes wrong is said once; the lines after it are not written. Problems: MW1005, MW1007.
    Result<Done> write(const TrainingProgress& progress);

    /// What went wrong in writing, if anything.
    Result<Done> finish();

private:
    explicit MetricsFile(std::string path)
        : m_path(std::move(path))
    {
    }
    Result<Done> begin(std::int64_t firstStep);
    Result<Done> append(std::string_view line);

    std::string m_path;
    std::string m_before; ///< lines of the run that this one goes on from
    std::optional<GrowingFile> m_file;
    Problems m_problems;
    bool m_hasBegun = false;
};

} // namespace meshwright::cli
