// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/dataset.h"

#include "core/support/text.h"
#include "core/train/byte_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <utility>

namespace meshwright {

namespace {

constexpr std::size_t kMostProblems = 20;
constexpr std::int64_t kMostClasses = 65536;
constexpr std::size_t kLongestLine = std::size_t{64} << 20;

/// Reads rows, and collects what is wrong with them.
class CsvReader {
public:
    CsvReader(Dataset& dataset, const DatasetOptions& options)
        : m_dataset(dataset)
        , m_options(options)
    {
    }

    Problems read(ByteStream& stream)
    {
        std::string begun; // of a line that the next bytes end
        while (m_problems.size() < kMostProblems) {
            const auto bytes = stream.next();
            if (!bytes)
                return bytes.error();
            if (bytes->empty()) {
                readLine(begun);
                break;
            }
            std::string_view text = *bytes;
            for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
                begun += text.substr(0, end);
                text.remove_prefix(end + 1);
                readLine(std::exchange(begun, {}));
            }
            begun += text;
            if (begun.size() > kLongestLine) {
                ++m_line;
                report("MW1604", fmt::format("the row has more than {} characters", kLongestLine), "is this a CSV file?");
                break;
            }
        }
        if (m_problems.empty() && m_dataset.labels.empty())
            m_problems.push_back(
                {"MW1602", "there are no rows", "give a file with one row for each example: the inputs, then the label"});
        if (m_problems.empty() && m_spilled != nullptr)
            spill();
        return std::move(m_problems);
    }

    /// Where the inputs are that did not stay in memory; null when all did.
    std::shared_ptr<OpenFile> spilled() const { return m_spilled; }
    std::int64_t columns() const { return static_cast<std::int64_t>(m_columns) - 1; }

private:
    void readLine(std::string_view text)
    {
        constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF"; // spreadsheets write one
        if (++m_line == 1 && text.starts_with(kByteOrderMark))
            text.remove_prefix(kByteOrderMark.size());
        const std::string_view line = trimmed(text);
        if (line.empty() || m_problems.size() >= kMostProblems)
            return;
        std::vector<std::string> fields = split(line, ',');
        for (std::string& field : fields)
            field = unquoted(field);
        if (!m_isFirst || !isHeading(fields))
            readRow(fields);
        m_isFirst = false;
        if (m_dataset.inputs.size() * sizeof(float) > m_options.bytesInMemory)
            spill();
    }

    /// Moves the inputs read so far to a temporary file.
    void spill()
    {
        if (m_spilled == nullptr) {
            auto file = OpenFile::temporary("the rows of \"" + m_dataset.name + "\"");
            if (!file)
                return append(m_problems, file.error());
            m_spilled = *std::move(file);
        }
        const auto bytes = std::as_bytes(std::span(m_dataset.inputs));
        if (auto put = m_spilled->append({reinterpret_cast<const char*>(bytes.data()), bytes.size()}); !put)
            append(m_problems, put.error());
        m_dataset.inputs.clear();
    }

    void report(const char* id, std::string message, std::string fix)
    {
        m_problems.push_back({id, std::move(message), std::move(fix), Place{{}, m_line, 0, {}}});
    }

    /// What is in a field, without the blanks and the quotes around it.
    static std::string unquoted(std::string_view field)
    {
        field = trimmed(field);
        const bool isQuoted = field.size() >= 2 && field.front() == '"' && field.back() == '"';
        return std::string(isQuoted ? trimmed(field.substr(1, field.size() - 2)) : field);
    }

    static bool isHeading(const std::vector<std::string>& fields)
    {
        return std::none_of(fields.begin(), fields.end(), [](const std::string& field) { return isNumberLike(field); });
    }

    /// Numbers and the spellings of what is none, so that a first row of `nan` is not a heading.
    static bool isNumberLike(std::string_view field)
    {
        std::string lower = lowerCase(field);
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
            const auto number = parseNumber(fields[i]);
            if (!number || !std::isfinite(static_cast<float>(*number * m_options.scale)))
                return report("MW1603", fmt::format("field {}: \"{}\" is not a finite number", i + 1, fields[i]),
                    "put a number there, or leave the row out");
            m_dataset.inputs.push_back(static_cast<float>(*number * m_options.scale));
        }
        readLabel(fields.back());
    }

    void readLabel(const std::string& field)
    {
        const auto number = parseNumber(field);
        if (!number)
            return report("MW1603", fmt::format("field {}: \"{}\" is not a finite number", m_columns, field),
                "the last field is the label: 0, 1, ..");
        const std::int64_t classes = m_options.classes > 0 ? m_options.classes : kMostClasses;
        if (*number < 0 || *number >= static_cast<double>(classes) || *number != std::floor(*number))
            return report("MW1605", fmt::format("the label {} is not an integer from 0 to {}", field, classes - 1),
                "number the classes from 0");
        m_dataset.labels.push_back(static_cast<std::int32_t>(*number));
    }

    Dataset& m_dataset;
    const DatasetOptions& m_options;
    Problems m_problems;
    std::size_t m_columns = 0;
    int m_line = 0;
    bool m_isFirst = true; ///< the next row
    std::shared_ptr<OpenFile> m_spilled;
};

void reorderRows(Dataset& dataset, std::vector<std::int64_t> order)
{
    if (dataset.hasLabels()) {
        std::vector<std::int32_t> labels;
        labels.reserve(order.size());
        for (const std::int64_t row : order)
            labels.push_back(dataset.labels[static_cast<std::size_t>(row)]);
        dataset.labels = std::move(labels);
    }
    if (dataset.inputFile == nullptr)
        dataset.inputs = inputsOf(dataset, order);
    else
        dataset.fileRows = std::move(order);
}

/// Sets rows aside, after they were shuffled if they are to be.
Result<Dataset> divided(Dataset dataset, const DatasetOptions& options, const std::string& file)
{
    const std::int64_t rows = dataset.rows();
    if (options.heldOut < 0 || options.heldOut >= rows)
        return Problem{"MW1607",
            fmt::format("{} rows of {} are to be held out: at least one must be left to train on", options.heldOut, rows),
            fmt::format("hold out 0 to {} rows", rows - 1), Place{file}};
    dataset.trainingRows = rows - options.heldOut;
    if (options.shuffleSeed)
        reorderRows(dataset, randomPermutation(keyOfSeed(*options.shuffleSeed), rows, true));
    return dataset;
}

Result<Dataset> csvDataset(ByteStream stream, const std::string& file, const DatasetOptions& options)
{
    Dataset dataset;
    dataset.name = file;
    CsvReader reader(dataset, options);
    if (Problems problems = reader.read(stream); !problems.empty())
        return inFile(std::move(problems), file);
    const auto rows = static_cast<std::int64_t>(dataset.labels.size());
    dataset.features = reader.columns();
    if (auto spilled = reader.spilled())
        dataset.inputFile = std::make_shared<RowFile>(std::move(spilled), rows, dataset.features);
    dataset.classes = options.classes > 0 ? options.classes
                                          : *std::max_element(dataset.labels.begin(), dataset.labels.end()) + std::int64_t{1};
    return divided(std::move(dataset), options, file);
}

/// Calls `visit` with the number and the values of each row of a file; stops at its first problem.
Result<Done> forEachRow(const RowFile& file, const std::function<Result<Done>(std::int64_t, std::span<const float>)>& visit)
{
    const std::int64_t columns = file.columns();
    const std::int64_t block = std::max<std::int64_t>(1, (std::int64_t{1} << 18) / columns);
    std::vector<float> values;
    for (std::int64_t first = 0; first < file.rows(); first += block) {
        const std::int64_t count = std::min(block, file.rows() - first);
        values.resize(static_cast<std::size_t>(count * columns));
        if (auto read = file.read(first, count, values); !read)
            return read;
        for (std::int64_t i = 0; i < count; ++i) {
            const auto row = std::span<const float>(values).subspan(
                static_cast<std::size_t>(i * columns), static_cast<std::size_t>(columns));
            if (auto good = visit(first + i, row); !good)
                return good;
        }
    }
    return Done{};
}

/// All of a file's values are finite, times a factor. Integers are not looked at.
Result<Done> checkFinite(const RowFile& file, double scale)
{
    if (!isFloating(file.dtype()))
        return Done{};
    return forEachRow(file, [&](std::int64_t row, std::span<const float> values) -> Result<Done> {
        const auto wrong = std::find_if(values.begin(), values.end(),
            [&](float v) { return !std::isfinite(static_cast<float>(static_cast<double>(v) * scale)); });
        if (wrong == values.end())
            return Done{};
        return Problem{"MW1603",
            fmt::format("row {}, element {}: {} is not a finite number", row + 1, wrong - values.begin() + 1, *wrong),
            "put a number there, or leave the row out", Place{file.name()}};
    });
}

Result<std::vector<std::int32_t>> readLabels(const RowFile& file, std::int64_t classes)
{
    std::vector<std::int32_t> labels;
    labels.reserve(static_cast<std::size_t>(file.rows()));
    const std::int64_t known = classes > 0 ? classes : kMostClasses;
    auto read = forEachRow(file, [&](std::int64_t row, std::span<const float> value) -> Result<Done> {
        const auto label = static_cast<double>(value.front());
        if (!(label >= 0 && label < static_cast<double>(known)) || label != std::floor(label))
            return Problem{"MW1605",
                fmt::format("the label {} of row {} is not an integer from 0 to {}", label, row + 1, known - 1),
                "number the classes from 0", Place{file.name()}};
        labels.push_back(static_cast<std::int32_t>(label));
        return Done{};
    });
    if (!read)
        return read.error();
    return labels;
}

/// Labels or targets, from the file beside that of the inputs.
Result<Done> addLabels(Dataset& dataset, const std::filesystem::path& path, const DatasetOptions& options)
{
    auto opened = RowFile::open(path);
    if (!opened)
        return opened.error();
    if (!opened->has_value())
        return Problem{"MW1610", "the labels are neither an IDX nor an NPY file, by its first bytes",
            "a CSV file has inputs and labels together", Place{path.string()}};
    const RowFile& file = **opened;
    if (file.rows() != dataset.inputFile->rows())
        return Problem{"MW1609", fmt::format("{} rows of inputs, {} of labels", dataset.inputFile->rows(), file.rows()),
            "give the labels of these inputs", Place{path.string()}};
    if (file.rank() == 1) {
        auto labels = readLabels(file, options.classes);
        if (!labels)
            return labels.error();
        dataset.labels = *std::move(labels);
        dataset.classes = options.classes > 0 ? options.classes
                                              : *std::max_element(dataset.labels.begin(), dataset.labels.end()) + std::int64_t{1};
        return Done{};
    }
    dataset.classes = file.columns();
    dataset.targetFile = std::make_shared<RowFile>(file);
    return checkFinite(file, 1.0);
}

bool isNamedLikeArrays(const std::filesystem::path& path)
{
    std::string name = path.filename().string();
    if (name.ends_with(".gz"))
        name.resize(name.size() - 3);
    return name.ends_with(".npy") || name.ends_with(".npz") || name.ends_with(".idx") || name.ends_with("ubyte");
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

Result<Dataset> readDataset(
    const std::filesystem::path& inputs, const std::filesystem::path& labels, const DatasetOptions& options)
{
    auto opened = RowFile::open(inputs);
    if (!opened)
        return opened.error();
    if (!opened->has_value()) {
        if (isNamedLikeArrays(inputs))
            return Problem{"MW1610", "it is neither an IDX nor an NPY file, by its first bytes",
                "get the file again; an archive (.npz) has to be unpacked", Place{inputs.string()}};
        if (!labels.empty())
            return Problem{"MW1613", "a CSV file has its labels in the last column, and a file of labels is named too",
                "leave out train.data.labels", Place{inputs.string()}};
        return readCsvDataset(inputs, options);
    }
    if (labels.empty())
        return Problem{"MW1613", "a file of inputs needs a file of labels beside it", "name it as train.data.labels",
            Place{inputs.string()}};
    Dataset dataset;
    dataset.name = inputs.filename().string();
    dataset.inputFile = std::make_shared<RowFile>(**std::move(opened));
    dataset.features = dataset.inputFile->columns();
    dataset.fileScale = options.scale;
    if (auto added = addLabels(dataset, labels, options); !added)
        return added.error();
    if (auto finite = checkFinite(*dataset.inputFile, options.scale); !finite)
        return finite.error();
    return divided(std::move(dataset), options, inputs.string());
}

Result<Dataset> readCsvDataset(const std::filesystem::path& path, const DatasetOptions& options)
{
    auto file = OpenFile::open(path);
    if (!file)
        return file.error();
    auto dataset = csvDataset(ByteStream(*std::move(file)), path.string(), options);
    if (dataset)
        dataset->name = path.filename().string();
    return dataset;
}

Result<Dataset> parseCsvDataset(std::string_view content, const std::string& file, const DatasetOptions& options)
{
    return csvDataset(ByteStream(content, file), file, options);
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
    if (dataset.labels.empty())
        return {{"MW1436", fmt::format("{} has more than one number as the label of a row", dataset.name),
            "give one token for each row, the one behind it: labels of rank 1"}};
    const auto isToken = [&](double value) {
        return value >= 0.0 && value < static_cast<double>(dataset.classes) && value == std::floor(value);
    };
    const auto noToken = [&](std::int64_t row, double value) {
        return Problem{"MW1491", fmt::format("row {} of {} has the input {}, which is not a token", row + 1, dataset.name, value),
            fmt::format("tokens are whole numbers from 0 to {}", dataset.classes - 1)};
    };
    if (dataset.inputFile != nullptr) {
        const auto checked = forEachRow(*dataset.inputFile, [&](std::int64_t row, std::span<const float> values) -> Result<Done> {
            for (const float value : values) {
                if (const double token = static_cast<double>(value) * dataset.fileScale; !isToken(token))
                    return noToken(row, token);
            }
            return Done{};
        });
        return checked ? Problems{} : checked.error();
    }
    const auto wrong = std::find_if(
        dataset.inputs.begin(), dataset.inputs.end(), [&](float value) { return !isToken(static_cast<double>(value)); });
    if (wrong == dataset.inputs.end())
        return {};
    return {
        noToken((wrong - dataset.inputs.begin()) / static_cast<std::ptrdiff_t>(dataset.features), static_cast<double>(*wrong))};
}

} // namespace meshwright
