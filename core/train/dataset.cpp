// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/dataset.h"

#include "core/support/file.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace meshwright {

namespace {

constexpr std::size_t kMostProblems = 20;
constexpr std::int64_t kMostClasses = 65536;

bool isGzip(std::string_view content)
{
    return content.size() >= 2 && content[0] == '\x1f' && content[1] == '\x8b';
}

/// The content of a gzip file, of any number of members.
Result<std::string> decompressed(std::string_view content)
{
    const auto damaged = [](const std::string& what) {
        return Problem{"MW1601", fmt::format("the compressed data {}", what), "get the file again"};
    };
    std::string text;
    std::size_t at = 0;
    while (at < content.size()) {
        z_stream stream = {};
        constexpr int kGzipWindow = 16 + MAX_WBITS;
        if (inflateInit2(&stream, kGzipWindow) != Z_OK)
            return damaged("cannot be read: zlib gives up");
        int status = Z_OK;
        std::string chunk(1 << 16, '\0');
        while (status == Z_OK && text.size() <= kLargestTextFileBytes) {
            // zlib counts with 32 bits: what is given at once is bounded.
            const std::size_t given = std::min<std::size_t>(content.size() - at, 1U << 30);
            stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data() + at)); // zlib does not write there
            stream.avail_in = static_cast<uInt>(given);
            stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
            stream.avail_out = static_cast<uInt>(chunk.size());
            status = inflate(&stream, Z_NO_FLUSH);
            at += given - stream.avail_in;
            text.append(chunk, 0, chunk.size() - stream.avail_out);
        }
        inflateEnd(&stream);
        if (text.size() > kLargestTextFileBytes)
            return damaged(fmt::format("has more than {} bytes", kLargestTextFileBytes));
        if (status == Z_BUF_ERROR)
            return damaged("ends too early");
        if (status != Z_STREAM_END)
            return damaged("is damaged");
    }
    return text;
}

/// Reads rows, and collects what is wrong with them.
class CsvReader {
public:
    CsvReader(Dataset& dataset, const DatasetOptions& options)
        : m_dataset(dataset)
        , m_options(options)
    {
    }

    Problems read(std::string_view text)
    {
        bool isFirst = true;
        for (std::size_t start = 0; start < text.size() && m_problems.size() < kMostProblems;) {
            const std::size_t end = std::min(text.find('\n', start), text.size());
            ++m_line;
            const std::string_view line = trimmed(text.substr(start, end - start));
            start = end + 1;
            if (line.empty())
                continue;
            const std::vector<std::string> fields = split(line, ',');
            if (!isFirst || !isHeading(fields))
                readRow(fields);
            isFirst = false;
        }
        if (m_problems.empty() && m_dataset.labels.empty())
            m_problems.push_back(
                {"MW1602", "there are no rows", "give a file with one row for each example: the inputs, then the label"});
        return std::move(m_problems);
    }

private:
    void report(const char* id, std::string message, std::string fix)
    {
        m_problems.push_back({id, std::move(message), std::move(fix), Place{{}, m_line, 0, {}}});
    }

    static bool isHeading(const std::vector<std::string>& fields)
    {
        return std::none_of(fields.begin(), fields.end(), [](const std::string& field) { return isNumberLike(trimmed(field)); });
    }

    /// Numbers and the spellings of what is none, so that a first row of `nan` is no heading.
    static bool isNumberLike(std::string_view field)
    {
        std::string lower;
        for (const char c : field)
            lower.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
        lower.erase(0, lower.find_first_not_of("+-"));
        return parseNumber(field) || lower.empty() || lower == "nan" || lower == "inf" || lower == "infinity";
    }

    void readRow(const std::vector<std::string>& fields)
    {
        if (m_columns == 0 && fields.size() >= 2)
            m_columns = fields.size();
        if (fields.size() < 2)
            return report("MW1604", fmt::format("the row has {} field: at least one input and a label are needed", fields.size()),
                "separate the fields with commas");
        if (fields.size() != m_columns)
            return report("MW1604", fmt::format("the row has {} fields, the first one has {}", fields.size(), m_columns),
                "give every row the same number of fields");

        for (std::size_t i = 0; i + 1 < fields.size(); ++i) {
            const auto number = parseNumber(trimmed(fields[i]));
            if (!number || !std::isfinite(static_cast<float>(*number * m_options.scale)))
                return report("MW1603", fmt::format("field {}: \"{}\" is not a finite number", i + 1, trimmed(fields[i])),
                    "put a number there, or leave the row out");
            m_dataset.inputs.push_back(static_cast<float>(*number * m_options.scale));
        }
        readLabel(fields.back());
    }

    void readLabel(const std::string& field)
    {
        const auto number = parseNumber(trimmed(field));
        if (!number)
            return report("MW1603", fmt::format("field {}: \"{}\" is not a finite number", m_columns, trimmed(field)),
                "the last field is the label: 0, 1, ..");
        const std::int64_t classes = m_options.classes > 0 ? m_options.classes : kMostClasses;
        if (*number < 0 || *number >= static_cast<double>(classes) || *number != std::floor(*number))
            return report("MW1605", fmt::format("the label {} is not an integer from 0 to {}", trimmed(field), classes - 1),
                "number the classes from 0");
        m_dataset.labels.push_back(static_cast<std::int32_t>(*number));
    }

    Dataset& m_dataset;
    const DatasetOptions& m_options;
    Problems m_problems;
    std::size_t m_columns = 0;
    int m_line = 0;
};

void reorderRows(Dataset& dataset, const std::vector<std::int64_t>& order)
{
    dataset.inputs = inputsOf(dataset, order);
    std::vector<std::int32_t> labels;
    labels.reserve(order.size());
    for (const std::int64_t row : order)
        labels.push_back(dataset.labels[static_cast<std::size_t>(row)]);
    dataset.labels = std::move(labels);
}

/// The inverse of the error function. Source: M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2011 (the single precision
/// polynomial, which XLA uses too).
float inverseErf(float x)
{
    constexpr std::array<float, 9> kCentre = {2.81022636e-08F, 3.43273939e-07F, -3.5233877e-06F, -4.39150654e-06F, 0.00021858087F,
        -0.00125372503F, -0.00417768164F, 0.246640727F, 1.50140941F};
    constexpr std::array<float, 9> kTail = {-0.000200214257F, 0.000100950558F, 0.00134934322F, -0.00367342844F, 0.00573950773F,
        -0.0076224613F, 0.00943887047F, 1.00167406F, 2.83297682F};
    float w = -std::log1p(-x * x);
    const bool isCentre = w < 5.0F;
    w = isCentre ? w - 2.5F : std::sqrt(w) - 3.0F;
    float p = 0.0F;
    for (const float coefficient : isCentre ? kCentre : kTail)
        p = coefficient + p * w;
    return p * x;
}

std::vector<float> normalWords(std::int64_t count, const RandomKey& key, bool partitionable, const std::stop_token& stop)
{
    constexpr std::size_t kBetweenLooks = std::size_t{1} << 16;
    const float low = std::nextafter(-1.0F, 0.0F);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i % kBetweenLooks == 0 && stop.stop_requested())
            break;
        const std::uint32_t word = randomWord(key, i, values.size(), partitionable);
        const float fraction = std::bit_cast<float>((word >> 9) | 0x3F800000U) - 1.0F;
        const float u = std::max(low, fraction * (1.0F - low) + low);
        values[i] = std::numbers::sqrt2_v<float> * inverseErf(u);
    }
    return values;
}

} // namespace

Result<Dataset> readCsvDataset(const std::filesystem::path& path, const DatasetOptions& options)
{
    const auto content = readFile(path);
    if (!content)
        return content.error();
    auto dataset = parseCsvDataset(*content, path.string(), options);
    if (dataset)
        dataset->name = path.filename().string();
    return dataset;
}

Result<Dataset> parseCsvDataset(std::string_view content, const std::string& file, const DatasetOptions& options)
{
    std::string unpacked;
    if (isGzip(content)) {
        auto text = decompressed(content);
        if (!text)
            return inFile(text.error(), file);
        unpacked = *std::move(text);
        content = unpacked;
    }
    Dataset dataset;
    dataset.name = file;
    if (Problems problems = CsvReader(dataset, options).read(content); !problems.empty())
        return inFile(std::move(problems), file);

    const auto rows = static_cast<std::int64_t>(dataset.labels.size());
    dataset.features = static_cast<std::int64_t>(dataset.inputs.size()) / rows;
    dataset.classes = options.classes > 0 ? options.classes
                                          : *std::max_element(dataset.labels.begin(), dataset.labels.end()) + std::int64_t{1};
    if (options.heldOut < 0 || options.heldOut >= rows)
        return Problem{"MW1607",
            fmt::format("{} rows of {} are to be held out: at least one must be left to train on", options.heldOut, rows),
            fmt::format("hold out 0 to {} rows", rows - 1), Place{file}};
    dataset.trainingRows = rows - options.heldOut;
    if (options.shuffleSeed)
        reorderRows(dataset, randomPermutation(keyOfSeed(*options.shuffleSeed), rows, true));
    return dataset;
}

Result<Dataset> readDigits(const std::filesystem::path& path)
{
    DatasetOptions options;
    options.scale = 1.0 / 16.0;
    options.classes = 10;
    options.heldOut = 297;
    options.shuffleSeed = 0;
    auto dataset = readCsvDataset(path, options);
    if (dataset)
        dataset->name = "digits";
    return dataset;
}

Dataset randomDataset(std::int64_t rows, std::int64_t features, std::int64_t outputs, const RandomKey& key, bool partitionable,
    const std::stop_token& stop)
{
    assert(rows >= 1 && features >= 1 && outputs >= 1);
    const std::vector<RandomKey> keys = splitKey(key, 3, partitionable);
    Dataset dataset;
    dataset.name = "random";
    dataset.features = features;
    dataset.classes = outputs;
    dataset.trainingRows = rows;
    dataset.inputs = normalWords(rows * features, keys[1], partitionable, stop);
    dataset.targets = normalWords(rows * outputs, keys[2], partitionable, stop);
    return dataset;
}

Result<Dataset> readDigitTokens(const std::filesystem::path& path)
{
    constexpr std::int32_t kShades = 17;
    auto dataset = readDigits(path);
    if (!dataset)
        return dataset;
    for (float& pixel : dataset->inputs)
        pixel *= 16.0F; // exact: they were divided by it
    for (std::int32_t& label : dataset->labels)
        label += kShades;
    dataset->classes += kShades;
    return dataset;
}

Dataset randomTokens(std::int64_t rows, std::int64_t sequence, std::int64_t vocabulary, const RandomKey& key)
{
    assert(rows >= 1 && sequence >= 1 && vocabulary >= 1);
    const auto count = static_cast<std::size_t>(rows * (sequence + 1));
    const auto token = [&](std::size_t at) { // the upper half of the product: biased by less than vocabulary / 2^32
        return (std::uint64_t{randomWord(key, at, count, true)} * static_cast<std::uint64_t>(vocabulary)) >> 32;
    };
    Dataset dataset;
    dataset.name = "random";
    dataset.features = sequence;
    dataset.classes = vocabulary;
    dataset.trainingRows = rows;
    for (std::int64_t row = 0; row < rows; ++row) {
        const auto first = static_cast<std::size_t>(row * (sequence + 1));
        for (std::size_t i = 0; i < static_cast<std::size_t>(sequence); ++i)
            dataset.inputs.push_back(static_cast<float>(token(first + i)));
        dataset.labels.push_back(static_cast<std::int32_t>(token(first + static_cast<std::size_t>(sequence))));
    }
    return dataset;
}

Problems tokenProblems(const Dataset& dataset, std::int64_t sequence)
{
    if (dataset.features != sequence)
        return {{"MW1436", fmt::format("{} has rows of {} tokens, the sequence has {}", dataset.name, dataset.features, sequence),
            fmt::format("write sequence: {}", dataset.features)}};
    const auto wrong = std::find_if(dataset.inputs.begin(), dataset.inputs.end(), [&](float value) {
        return !(value >= 0.0F && value < static_cast<float>(dataset.classes)) || value != std::floor(value);
    });
    if (wrong == dataset.inputs.end())
        return {};
    const auto row = (wrong - dataset.inputs.begin()) / static_cast<std::ptrdiff_t>(dataset.features);
    return {{"MW1491", fmt::format("row {} of {} has the input {}, which is no token", row + 1, dataset.name, *wrong),
        fmt::format("tokens are whole numbers from 0 to {}", dataset.classes - 1)}};
}

std::vector<float> followingOf(const Dataset& dataset, std::span<const std::int64_t> rows)
{
    std::vector<float> values;
    values.reserve(rows.size() * static_cast<std::size_t>(dataset.features));
    for (const std::int64_t row : rows) {
        const auto first = dataset.inputs.begin() + row * dataset.features;
        values.insert(values.end(), first + 1, first + dataset.features);
        values.push_back(static_cast<float>(dataset.labels[static_cast<std::size_t>(row)]));
    }
    return values;
}

std::vector<float> labelsOf(const Dataset& dataset, std::span<const std::int64_t> rows)
{
    std::vector<float> values;
    for (const std::int64_t row : rows)
        values.push_back(static_cast<float>(dataset.labels[static_cast<std::size_t>(row)]));
    return values;
}

Result<BatchPlan> BatchPlan::make(std::int64_t trainingRows, std::int64_t batch, std::uint64_t seed)
{
    if (batch < 1 || batch > trainingRows)
        return Problem{"MW1606",
            fmt::format("a batch of {} does not fit a data set with {} rows to train on", batch, trainingRows),
            fmt::format("the largest batch is {}", trainingRows)};
    BatchPlan plan;
    plan.m_trainingRows = trainingRows;
    plan.m_batch = batch;
    plan.m_seed = seed;
    return plan;
}

std::span<const std::int64_t> BatchPlan::rowsOf(std::int64_t step)
{
    assert(step >= 0);
    const std::int64_t epoch = step / stepsPerEpoch();
    if (m_epoch != epoch) {
        m_epoch = epoch;
        if (m_batch < m_trainingRows) {
            m_order = randomPermutation(foldIn(keyOfSeed(m_seed), static_cast<std::uint32_t>(epoch)), m_trainingRows, true);
        } else {
            m_order.resize(static_cast<std::size_t>(m_trainingRows));
            std::iota(m_order.begin(), m_order.end(), std::int64_t{0});
        }
    }
    const std::int64_t first = (step % stepsPerEpoch()) * m_batch;
    return std::span<const std::int64_t>(m_order).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(m_batch));
}

std::vector<float> inputsOf(const Dataset& dataset, std::span<const std::int64_t> rows)
{
    std::vector<float> values;
    values.reserve(rows.size() * static_cast<std::size_t>(dataset.features));
    for (const std::int64_t row : rows) {
        const auto first = dataset.inputs.begin() + row * dataset.features;
        values.insert(values.end(), first, first + dataset.features);
    }
    return values;
}

std::vector<float> targetsOf(const Dataset& dataset, std::span<const std::int64_t> rows)
{
    const auto classes = static_cast<std::size_t>(dataset.classes);
    std::vector<float> values(rows.size() * classes, 0.0F);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto row = static_cast<std::size_t>(rows[i]);
        if (dataset.targets.empty())
            values[i * classes + static_cast<std::size_t>(dataset.labels[row])] = 1.0F;
        else
            std::copy_n(dataset.targets.begin() + static_cast<std::ptrdiff_t>(row * classes), classes,
                values.begin() + static_cast<std::ptrdiff_t>(i * classes));
    }
    return values;
}

} // namespace meshwright
