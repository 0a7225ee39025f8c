// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/train/dataset.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

#include <zlib.h>

#include <cmath>
#include <numeric>

namespace tst_dataset {

using namespace meshwright;

namespace {

const std::filesystem::path kDigits = std::filesystem::path(MESHWRIGHT_SOURCE_DIR) / "resources/data/digits.csv.gz";

std::string gzipped(const std::string& text)
{
    z_stream stream = {};
    if (deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return {};
    std::string result(deflateBound(&stream, text.size()) + 64, '\0');
    std::string input = text;
    stream.next_in = reinterpret_cast<Bytef*>(input.data());
    stream.avail_in = static_cast<uInt>(input.size());
    stream.next_out = reinterpret_cast<Bytef*>(result.data());
    stream.avail_out = static_cast<uInt>(result.size());
    deflate(&stream, Z_FINISH);
    result.resize(stream.total_out);
    deflateEnd(&stream);
    return result;
}

} // namespace

class TestDataset : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void digits();
    void csv_data();
    void csv();
    void errors_data();
    void errors();
    void missingAndDirectory();
    void everyWrongLine();
    void shuffledSplit();
    void random();
    void randomIsNormal();
    void batches();
    void batchErrors();
    void oneHot();
    void digitTokens();
    void tokens();
    void tokenErrors();

private:
    std::filesystem::path write(const std::string& name, const std::string& content)
    {
        const std::filesystem::path path = std::filesystem::path(m_dir.path().toStdString()) / name;
        [[maybe_unused]] const auto done = writeFileAtomically(path, content);
        return path;
    }

    QTemporaryDir m_dir;
};

void TestDataset::digits()
{
    const auto digits = readDigits(kDigits);
    QVERIFY2(digits, digits ? "" : describe(digits.error()).c_str());
    QCOMPARE(digits->rows(), std::int64_t{1797});
    QCOMPARE(digits->trainingRows, std::int64_t{1500});
    QCOMPARE(digits->heldOutRows(), std::int64_t{297});
    QCOMPARE(digits->features, std::int64_t{64});
    QCOMPARE(digits->classes, std::int64_t{10});
    std::vector<int> counts(10, 0);
    for (const std::int32_t label : digits->labels)
        ++counts[static_cast<std::size_t>(label)];
    QCOMPARE(counts,
        (std::vector<int>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180})); // as the data's own description counts them
    QVERIFY(digits->labels != valueOf(readCsvDataset(kDigits, {})).labels); // shuffled: the file has them writer by writer
    QCOMPARE(digits->labels, valueOf(readDigits(kDigits)).labels);
    const auto [least, most] = std::minmax_element(digits->inputs.begin(), digits->inputs.end());
    QCOMPARE(*least, 0.0F);
    QCOMPARE(*most, 1.0F);
}

void TestDataset::csv_data()
{
    QTest::addColumn<std::string>("content");
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("classes");

    const std::string plain = "1,2,0\n3,4,2\n";
    QTest::newRow("plain") << plain << 2 << 3;
    QTest::newRow("no last newline") << std::string("1,2,0\n3,4,2") << 2 << 3;
    QTest::newRow("windows lines") << std::string("1,2,0\r\n3,4,2\r\n") << 2 << 3;
    QTest::newRow("heading") << "a,b,label\n" + plain << 2 << 3;
    QTest::newRow("blank lines") << std::string("\n1,2,0\n\n3,4,2\n\n") << 2 << 3;
    QTest::newRow("spaces") << std::string(" 1 , 2,0 \n3,4e0,2\n") << 2 << 3;
    QTest::newRow("quotes") << std::string("\"a, b\",\"c\",\"label\"\n\"1\",\"2\",\"0\"\n3,\" 4 \",2\n") << 2 << 3;
    QTest::newRow("of a spreadsheet") << "\xEF\xBB\xBF" + plain << 2 << 3;
    QTest::newRow("gzip") << gzipped(plain) << 2 << 3;
    QTest::newRow("two gzip members") << gzipped(plain) + gzipped("5,6,1\n") << 3 << 3;
}

void TestDataset::csv()
{
    QFETCH(std::string, content);
    QFETCH(int, rows);
    QFETCH(int, classes);
    const auto dataset = readCsvDataset(write("good.csv", content), {});
    QVERIFY2(dataset, dataset ? "" : describe(dataset.error()).c_str());
    QCOMPARE(dataset->rows(), std::int64_t{rows});
    QCOMPARE(dataset->classes, std::int64_t{classes});
    QCOMPARE(dataset->features, std::int64_t{2});
    QCOMPARE(dataset->inputs[3], 4.0F);
    QCOMPARE(dataset->labels[1], 2);
}

void TestDataset::errors_data()
{
    QTest::addColumn<std::string>("content");
    QTest::addColumn<std::string>("id");
    QTest::addColumn<std::string>("message");
    QTest::addColumn<int>("line");

    const std::string squeezed = gzipped("1,2,0\n3,4,2\n");
    std::string flipped = squeezed;
    flipped[squeezed.size() - 6] = static_cast<char>(flipped[squeezed.size() - 6] ^ 1); // in the checksum
    QTest::newRow("cut off") << squeezed.substr(0, squeezed.size() - 9) << std::string("MW1601")
                             << std::string("the compressed data ends too early") << 0;
    QTest::newRow("damaged") << flipped << std::string("MW1601") << std::string("the compressed data is damaged") << 0;
    QTest::newRow("trailing rubbish") << squeezed + "x" << std::string("MW1601") << std::string("the compressed data") << 0;
    QTest::newRow("empty") << std::string() << std::string("MW1602") << std::string("there are no rows") << 0;
    QTest::newRow("heading only") << std::string("a,b\n") << std::string("MW1602") << std::string("there are no rows") << 0;
    QTest::newRow("word") << std::string("1,2,0\n1,two,0\n") << std::string("MW1603")
                          << std::string("field 2: \"two\" is not a finite number") << 2;
    QTest::newRow("nan") << std::string("nan,nan,nan\n") << std::string("MW1603")
                         << std::string("field 1: \"nan\" is not a finite number") << 1;
    QTest::newRow("inf") << std::string("1,inf,0\n") << std::string("MW1603")
                         << std::string("field 2: \"inf\" is not a finite number") << 1;
    QTest::newRow("too large for f32") << std::string("1,1e39,0\n") << std::string("MW1603")
                                       << std::string("field 2: \"1e39\" is not a finite number") << 1;
    QTest::newRow("empty field") << std::string("1,,0\n") << std::string("MW1603")
                                 << std::string("field 2: \"\" is not a finite number") << 1;
    QTest::newRow("missing value") << std::string("1,NA,0\n") << std::string("MW1603")
                                   << std::string("field 2: \"NA\" is not a finite number") << 1;
    QTest::newRow("empty quotes") << std::string("1,\"\",0\n") << std::string("MW1603")
                                  << std::string("field 2: \"\" is not a finite number") << 1;
    QTest::newRow("open quote") << std::string("1,\"2,0\n") << std::string("MW1603")
                                << std::string("field 2: \"\"2\" is not a finite number") << 1;
    QTest::newRow("label word") << std::string("1,2,cat\n") << std::string("MW1603")
                                << std::string("field 3: \"cat\" is not a finite number") << 1;
    QTest::newRow("ragged") << std::string("1,2,0\n1,2,3,0\n") << std::string("MW1604")
                            << std::string("the row has 4 fields, the first one has 3") << 2;
    QTest::newRow("one field") << std::string("1\n") << std::string("MW1604")
                               << std::string("the row has 1 field: at least one input and a label are needed") << 1;
    QTest::newRow("label too large") << std::string("1,2,4\n") << std::string("MW1605")
                                     << std::string("the label 4 is not an integer from 0 to 3") << 1;
    QTest::newRow("negative label") << std::string("1,2,-1\n") << std::string("MW1605")
                                    << std::string("the label -1 is not an integer from 0 to 3") << 1;
    QTest::newRow("fraction") << std::string("1,2,0.5\n") << std::string("MW1605")
                              << std::string("the label 0.5 is not an integer from 0 to 3") << 1;
}

void TestDataset::errors()
{
    QFETCH(std::string, content);
    QFETCH(std::string, id);
    QFETCH(std::string, message);
    QFETCH(int, line);
    DatasetOptions options;
    options.classes = 4;
    const auto path = write("bad.csv", content);
    const auto dataset = readCsvDataset(path, options);
    QVERIFY(!dataset);
    const Problem& problem = dataset.error().front();
    QCOMPARE(problem.id, id);
    QVERIFY2(problem.message.starts_with(message), problem.message.c_str());
    QCOMPARE(problem.place.line, line);
    QCOMPARE(problem.place.file, path.string());
}

void TestDataset::missingAndDirectory()
{
    QCOMPARE(readCsvDataset("/no/such/file.csv", {}).error().front().id, std::string("MW1001"));
    QCOMPARE(readCsvDataset(m_dir.path().toStdString(), {}).error().front().id, std::string("MW1002"));
    DatasetOptions options;
    options.heldOut = 2;
    const auto dataset = readCsvDataset(write("two.csv", "1,0\n2,1\n"), options);
    QVERIFY(!dataset);
    QCOMPARE(dataset.error().front().id, std::string("MW1607"));
    QCOMPARE(dataset.error().front().fix, std::string("hold out 0 to 1 rows"));
}

void TestDataset::everyWrongLine()
{
    const auto two = readCsvDataset(write("bad.csv", "1,x,0\n1,2,0\n1,2\n"), {});
    QVERIFY(!two);
    QCOMPARE(two.error().size(), std::size_t{2});
    QCOMPARE(two.error()[1].place.line, 3);

    std::string many;
    for (int i = 0; i < 1000; ++i)
        many += "x,1,0\n";
    QCOMPARE(readCsvDataset(write("bad.csv", many), {}).error().size(), std::size_t{20});
}

void TestDataset::shuffledSplit()
{
    DatasetOptions options;
    options.heldOut = 297;
    options.shuffleSeed = 3;
    const auto plain = readDigits(kDigits);
    const auto shuffled = readCsvDataset(kDigits, options);
    const auto again = readCsvDataset(kDigits, options);
    QVERIFY(plain && shuffled && again);
    QVERIFY(shuffled->labels != plain->labels);
    QCOMPARE(shuffled->labels, again->labels);
    QCOMPARE(std::accumulate(shuffled->labels.begin(), shuffled->labels.end(), 0),
        std::accumulate(plain->labels.begin(), plain->labels.end(), 0));
    // Rows stay with their labels: the row that was first is found with its label.
    const std::vector<float> first(plain->inputs.begin(), plain->inputs.begin() + 64);
    bool isFound = false;
    for (std::int64_t row = 0; row < shuffled->rows() && !isFound; ++row) {
        bool same = true;
        for (std::int64_t i = 0; same && i < 64; ++i)
            same = shuffled->inputs[static_cast<std::size_t>(row * 64 + i)] == first[static_cast<std::size_t>(i)] * 16.0F;
        isFound = same && shuffled->labels[static_cast<std::size_t>(row)] == plain->labels[0];
    }
    QVERIFY(isFound);
}

void TestDataset::random()
{
    const Dataset data = randomDataset(1000, 20, 10, keyOfSeed(1), true);
    QCOMPARE(data.rows(), std::int64_t{1000});
    QCOMPARE(data.targets.size(), std::size_t{10000});
    double sum = 0.0;
    double squares = 0.0;
    for (const float x : data.inputs) {
        sum += static_cast<double>(x);
        squares += static_cast<double>(x) * static_cast<double>(x);
    }
    // 20000 draws: the mean's deviation is 0.007, that of the mean square 0.01.
    QVERIFY(std::abs(sum / 20000.0) < 0.03);
    QVERIFY(std::abs(squares / 20000.0 - 1.0) < 0.04);
    QVERIFY(randomDataset(4, 2, 1, keyOfSeed(1), false).inputs != randomDataset(4, 2, 1, keyOfSeed(1), true).inputs);
}

// One number by hand: the normal distribution's quantile of the uniform number that the word makes.
void TestDataset::randomIsNormal()
{
    const RandomKey key = keyOfSeed(0);
    const Dataset data = randomDataset(1, 1, 1, key, false);
    const std::vector<RandomKey> keys = splitKey(key, 3, false);
    const std::uint32_t word = randomWord(keys[1], 0, 1, false);
    const float u = std::bit_cast<float>((word >> 9) | 0x3F800000U) - 1.0F;
    // erf(x / sqrt 2) = 2 u - 1
    QVERIFY(
        std::abs(std::erf(static_cast<double>(data.inputs[0]) / std::sqrt(2.0)) - (2.0 * static_cast<double>(u) - 1.0)) < 1e-6);
}

void TestDataset::batches()
{
    auto plan = BatchPlan::make(10, 3, 1);
    QVERIFY(plan);
    QCOMPARE(plan->stepsPerEpoch(), std::int64_t{3});
    std::set<std::int64_t> seen;
    for (std::int64_t step = 0; step < 3; ++step) {
        for (const std::int64_t row : plan->rowsOf(step)) {
            QVERIFY(row >= 0 && row < 10);
            QVERIFY(seen.insert(row).second);
        }
    }
    const auto rows = plan->rowsOf(4);
    const std::vector<std::int64_t> later(rows.begin(), rows.end());
    auto resumed = BatchPlan::make(10, 3, 1);
    const auto again = resumed->rowsOf(4); // without the steps before
    QCOMPARE(later, std::vector<std::int64_t>(again.begin(), again.end()));

    auto fresh = BatchPlan::make(10, 3, 1);
    const auto first = fresh->rowsOf(0);
    const auto back = plan->rowsOf(0); // after a later epoch
    QCOMPARE(std::vector<std::int64_t>(back.begin(), back.end()), std::vector<std::int64_t>(first.begin(), first.end()));

    auto whole = BatchPlan::make(4, 4, 9);
    const auto all = whole->rowsOf(7);
    QCOMPARE(std::vector<std::int64_t>(all.begin(), all.end()), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

void TestDataset::batchErrors()
{
    const auto plan = BatchPlan::make(1500, 2048, 0);
    QVERIFY(!plan);
    QCOMPARE(plan.error().front().id, std::string("MW1606"));
    QCOMPARE(plan.error().front().message, std::string("a batch of 2048 does not fit a data set with 1500 rows to train on"));
    QCOMPARE(plan.error().front().fix, std::string("the largest batch is 1500"));
    QVERIFY(!BatchPlan::make(10, 0, 0));
    QVERIFY(BatchPlan::make(10, 10, 0));
}

void TestDataset::oneHot()
{
    Dataset data;
    data.features = 2;
    data.classes = 3;
    data.inputs = {1, 2, 3, 4};
    data.labels = {2, 0};
    const std::vector<std::int64_t> rows = {1, 0, 1};
    QCOMPARE(inputsOf(data, rows), (std::vector<float>{3, 4, 1, 2, 3, 4}));
    QCOMPARE(targetsOf(data, rows), (std::vector<float>{1, 0, 0, 0, 0, 1, 1, 0, 0}));
    data.labels.clear();
    data.targets = {.1F, .2F, .3F, .4F, .5F, .6F};
    QCOMPARE(targetsOf(data, std::vector<std::int64_t>{1}), (std::vector<float>{.4F, .5F, .6F}));
}

// Pixels in their 17 shades, and the classes behind them.
void TestDataset::digitTokens()
{
    const auto pixels = readDigits(kDigits);
    const auto tokens = readDigitTokens(kDigits);
    QVERIFY(pixels && tokens);
    QCOMPARE(tokens->classes, std::int64_t{27});
    QCOMPARE(tokens->features, std::int64_t{64});
    QCOMPARE(tokens->trainingRows, pixels->trainingRows);
    for (std::size_t i = 0; i < tokens->inputs.size(); ++i)
        QCOMPARE(tokens->inputs[i], 16.0F * pixels->inputs[i]);
    for (std::size_t i = 0; i < tokens->labels.size(); ++i)
        QCOMPARE(tokens->labels[i], pixels->labels[i] + 17);
    QVERIFY(tokenProblems(*tokens, 64).empty());
}

void TestDataset::tokens()
{
    const Dataset data = randomTokens(40, 50, 7, keyOfSeed(3));
    QCOMPARE(data.rows(), std::int64_t{40});
    QVERIFY(tokenProblems(data, 50).empty());
    std::vector<int> counts(7, 0);
    for (const float token : data.inputs)
        ++counts.at(static_cast<std::size_t>(token));
    for (const int count : counts)
        QVERIFY(count > 200 && count < 380); // 2000 draws, 286 each: 6 deviations of 16
    QVERIFY(randomTokens(40, 50, 7, keyOfSeed(4)).inputs != data.inputs);

    Dataset small;
    small.features = 3;
    small.inputs = {1, 2, 3, 4, 5, 6};
    small.labels = {7, 8};
    const std::vector<std::int64_t> rows = {1, 0};
    QCOMPARE(labelsOf(small, rows), (std::vector<float>{8, 7}));
}

void TestDataset::tokenErrors()
{
    Dataset data = randomTokens(2, 3, 5, keyOfSeed(0));
    const auto idOf = [&](std::int64_t sequence) {
        const Problems found = tokenProblems(data, sequence);
        return found.empty() ? std::string() : found.front().id;
    };
    QCOMPARE(idOf(3), std::string());
    QCOMPARE(idOf(4), std::string("MW1436"));
    for (const float wrong : {5.0F, -1.0F, 0.5F, std::nanf("")}) {
        data.inputs[4] = wrong;
        QCOMPARE(idOf(3), std::string("MW1491"));
        QVERIFY(tokenProblems(data, 3).front().message.starts_with("row 2 "));
    }
}

MESHWRIGHT_TEST(TestDataset)

} // namespace tst_dataset

#include "tst_dataset.moc"
