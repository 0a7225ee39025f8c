// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "core/support/threefry.h"
#include "core/train/row_file.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// Rows to learn from. The first `trainingRows` are for training, the others are held out. Inputs and targets are in memory, or in files from
/// which the rows of a batch are read when it is their turn.
struct Dataset {
    std::string name;
    std::int64_t features = 0; ///< inputs of one row
    std::int64_t classes = 0; ///< width of one row's target
    std::int64_t trainingRows = 0;
    std::vector<float> inputs; ///< [rows, features], row-major
    std::vector<std::int32_t> labels; ///< [rows], 0 .. classes - 1; empty when there are targets
    std::vector<float> targets; ///< [rows, classes], row-major; empty when there are labels
    std::shared_ptr<const RowFile> inputFile = {}; ///< the inputs, before they are scaled, in place of `inputs`
    std::shared_ptr<const RowFile> targetFile = {}; ///< in place of `targets`
    double fileScale = 1.0; ///< of the inputs in the file
    std::vector<std::int64_t> fileRows = {}; ///< row i is row fileRows[i] of the files; empty: row i
    std::shared_ptr<const Dataset> evaluation = {}; ///< what accuracy is measured on; null: the rows held out

    std::int64_t rows() const
    {
        if (inputFile != nullptr)
            return inputFile->rows();
        return features == 0 ? 0 : static_cast<std::int64_t>(inputs.size()) / features;
    }
    bool hasLabels() const { return !labels.empty(); }
    std::int64_t heldOutRows() const { return rows() - trainingRows; }
};

/// How a file of rows is read.
struct DatasetOptions {
    double scale = 1.0; ///< every input is multiplied by this
    std::int64_t classes = 0; ///< 0: the largest label + 1
    std::int64_t heldOut = 0; ///< the last so many rows are held out
    std::optional<std::uint64_t> shuffleSeed
        = {}; ///< rows are shuffled with it before they are divided; nothing: they stay in their order
    std::size_t bytesInMemory = std::size_t{256} << 20; ///< inputs of a CSV file beyond this go to a temporary file
};

/// A file of rows of any kind: IDX or NPY, whose labels (of rank 1) or targets (of rank 2, any numbers) are in a file of their own, or CSV; plain or
/// gzip. The first bytes decide, not the name.
///
/// Files may be larger than memory. What is held is 4 bytes for each label, 8 for each row that is shuffled or spilled, and the batch at work; of a CSV
/// file at most `bytesInMemory` more. Gzip data is unpacked once, and long CSV files are written once as f32, into a temporary file (TMPDIR). A
/// file of floating values is read once before training, to see that all of them are finite.
///
/// Problems: those of `RowFile::open` and `readCsvDataset`; MW1609 inputs and labels differ in their rows; MW1613 labels are missing, or twice.
Result<Dataset> readDataset(
    const std::filesystem::path& inputs, const std::filesystem::path& labels, const DatasetOptions& options);

/// A CSV file, plain or gzip: numbers separated by commas, in quotes or not, the last column a label 0, 1, ..; a first row without any number is
/// a heading. Blank lines are skipped, and a mark of the order of bytes before the first one.
///
/// Problems (the first 20 wrong lines, each with its place): those of `OpenFile`; MW1601 the compressed data is damaged, cut
/// off; MW1602 there are no rows; MW1603 a field is not a finite number; MW1604 a row has
/// another number of fields than the first (or fewer than two); MW1605 a label is not an integer from 0 to classes - 1 (or 65535);
/// MW1607 fewer than one row is left to train on.
Result<Dataset> readCsvDataset(const std::filesystem::path& path, const DatasetOptions& options);

/// The same from the content of a file; `file` is what problems name. Problems: as `readCsvDataset` but those of `readFile`.
Result<Dataset> parseCsvDataset(std::string_view content, const std::string& file, const DatasetOptions& options);

/// The 8 x 8 digits of resources/data/digits.csv.gz: 64 inputs scaled to 0..1, 10 classes. The rows are shuffled (the file has them
/// by writer) with a seed that is always the same; 1500 are to train on, 297 held out.
Result<Dataset> readDigits(const std::filesystem::path& path);

/// Standard normal inputs and targets: the data of JAX's MLP examples, `inputs = normal(k1, (rows, features))` and
/// `targets = normal(k2, (rows, outputs))` where `_, k1, k2 = split(key, 3)`. All rows are for training.
/// Drawn only in part once `stop` was asked for. Preconditions: all sizes >= 1.
Dataset randomDataset(std::int64_t rows, std::int64_t features, std::int64_t outputs, const RandomKey& key, bool partitionable,
    const std::stop_token& stop = {});

/// The digits as tokens: 64 pixels of 0 to 16, and behind them the class as token 17 to 26. Rows and their order are those of readDigits.
Result<Dataset> readDigitTokens(const std::filesystem::path& path);

/// Uniform tokens below `vocabulary`, all rows for training; the label is the token behind the row. Preconditions: all sizes >= 1,
/// vocabulary <= 2^24.
Dataset randomTokens(std::int64_t rows, std::int64_t sequence, std::int64_t vocabulary, const RandomKey& key);

/// What keeps rows from being tokens. Problems: MW1436 another number of inputs than the sequence has tokens, MW1491 an input that is no
/// whole number from 0 to classes - 1.
Problems tokenProblems(const Dataset& dataset, std::int64_t sequence);

/// The labels of the rows as numbers.
std::vector<float> labelsOf(const Dataset& dataset, std::span<const std::int64_t> rows);

/// Which rows each training step takes: every epoch goes once through the training rows in an order of its own, in whole batches (the
/// rows that are left over wait for the next epoch's order, `randomPermutation(foldIn(key(seed), epoch))`). A step's rows depend on the seed and the step's number alone. A batch of
/// all rows has them in their own order.
class BatchPlan {
public:
    /// Problems: MW1606 the batch is < 1 or larger than the number of training rows.
    static Result<BatchPlan> make(std::int64_t trainingRows, std::int64_t batch, std::uint64_t seed);

    std::int64_t stepsPerEpoch() const { return m_trainingRows / m_batch; }
    /// The rows of step 0, 1, ..; valid until the next call. Precondition: step >= 0.
    std::span<const std::int64_t> rowsOf(std::int64_t step);

private:
    std::int64_t m_trainingRows = 1;
    std::int64_t m_batch = 1;
    std::uint64_t m_seed = 0;
    std::int64_t m_epoch = -1;
    std::vector<std::int64_t> m_order;
};

/// The inputs [rows, features] of the given rows, row-major; and their targets [rows, classes], labels as one-hot.
/// Preconditions: the rows exist; inputs and targets are in memory.
std::vector<float> inputsOf(const Dataset& dataset, std::span<const std::int64_t> rows);
std::vector<float> targetsOf(const Dataset& dataset, std::span<const std::int64_t> rows);

/// The same, from wherever they are. Problems: those of `RowFile::read`.
Result<std::vector<float>> readInputs(const Dataset& dataset, std::span<const std::int64_t> rows);
Result<std::vector<float>> readTargets(const Dataset& dataset, std::span<const std::int64_t> rows);
Result<std::vector<float>> readFollowing(const Dataset& dataset, std::span<const std::int64_t> rows);

} // namespace meshwright
