// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "core/train/trainer.h"

#include <cstdio>
#include <memory>
#include <string>

namespace meshwright::cli {

/// A file of metrics as training goes on: a line of `meshwright.metrics/1` for each step, there as soon as the step is done. A run that goes on from a
/// checkpoint keeps the lines of the steps before it and writes the others anew.
class MetricsFile {
public:
    /// `path`: `-` is standard output, empty is none. `resumes`: lines may be there. Problems: MW1005 it cannot be written.
    static Result<std::unique_ptr<MetricsFile>> open(const std::string& path, bool resumes);

    void write(const TrainingProgress& progress);

    /// Problems: MW1005 something could not be written.
    Result<Done> finish();

private:
    explicit MetricsFile(std::string path)
        : m_path(std::move(path))
    {
    }
    Problem cannotWrite(int error) const;
    Result<Done> begin(std::int64_t firstStep);

    using Stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
    std::string m_path;
    std::string m_before; ///< lines of the run that this one goes on from
    Stream m_stream{nullptr, &std::fclose};
    Problems m_problems;
    bool m_hasBegun = false;
};

} // namespace meshwright::cli
