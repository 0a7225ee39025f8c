// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/sim/report/reports.h"

#include "tests/test_class.h"
#include "tests/values.h"

#include <QRegularExpression>

#include <cmath>

namespace tst_build_report {

using namespace meshwright;
using namespace meshwright::sim;
using namespace meshwright::tests;

using Words = std::vector<std::string>;

namespace {

/// The figure of this label, wherever it stands in a section.
const ReportFigure* findFigure(const std::vector<ReportFigures>& blocks, const std::string& label)
{
    for (const ReportFigures& block : blocks) {
        for (const ReportFigure& figure : block.figures) {
            if (figure.label == label)
                return &figure;
        }
    }
    return nullptr;
}

double figureOf(const Report& report, const char* section, const std::string& label)
{
    const auto blocks = blocksOf<ReportFigures>(report, section);
    const ReportFigure* figure = findFigure(blocks, label);
    return figure != nullptr && figure->value.number ? *figure->value.number : std::nan("");
}

/// The row of a table that begins with this text.
std::optional<ReportRow> rowOf(const ReportTable& table, const std::string& first)
{
    for (const ReportRow& row : table.rows) {
        if (row.cells.front().text.starts_with(first))
            return row;
    }
    return std::nullopt;
}

QString paragraphs(const Report& report, const char* section)
{
    QString all;
    for (const ReportParagraph& paragraph : blocksOf<ReportParagraph>(report, section))
        all += QString::fromStdString(paragraph.text) + '\n';
    return all;
}

} // namespace

/// What a report says, against the engine that it speaks of.
class TestBuildReport : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void answers_data();
    void answers();
    void advisedChangeIsAsFastAsSaid();
    void advisedBatchFits();
    void trialsStop();
    void sectionsAreThere();
    void breakdownAddsUp_data();
    void breakdownAddsUp();
    void everyFigureOpens();
    void collectivesAreThoseOfTheSimulation();
    void layoutsShareRows();
    void pipelines_data();
    void pipelines();
    void withoutHardware();
    void meshTooLarge();
    void brokenStudy();
    void programStudy();
    void reportsTraining();
    void trainingOfAnotherStudy();
    void failedVerification();
    void noFolderInIt();
    void sameTwice();
    void commands();
};

void TestBuildReport::answers_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<Words>("settings");
    QTest::addColumn<QString>("fits");
    QTest::addColumn<QString>("bound");
    QTest::addColumn<QString>("next");

    // By hand from `meshwright simulate` with the settings that each advice names.
    QTest::newRow("another mesh is faster") << "wide_mlp" << Words{} << "Yes"
                                            << "compute"
                                            << "mesh data=8, model=1";
    QTest::newRow("the fastest mesh") << "wide_mlp" << Words{"mesh.data=8", "mesh.model=1"} << "Yes"
                                      << "compute"
                                      << "Keep this layout";
    QTest::newRow("waits, every layout is slower") << "wide_mlp" << Words{"batch=8192"} << "Yes"
                                                   << "all-reduce over data"
                                                   << "batch 16384";
    QTest::newRow("too large a batch") << "wide_mlp" << Words{"batch=4194304"} << "No"
                                       << "compute"
                                       << "batch 262144";
    QTest::newRow("too large, and no half of it")
        << "wide_mlp" << Words{"mesh={data: 1}", "sharding={}", "batch=4194305", "hardware={chip: v5e, topology: [1, 1]}"} << "No"
        << "compute"
        << "More memory";
    QTest::newRow("one axis, no other mesh") << "fsdp" << Words{} << "Yes"
                                             << "all-reduce over data"
                                             << "batch 2048";
    QTest::newRow("everywhere the same") << "replicated" << Words{} << "Yes"
                                         << "launch overhead"
                                         << "Keep this layout";
}

void TestBuildReport::answers()
{
    QFETCH(QString, example);
    QFETCH(Words, settings);
    QFETCH(QString, fits);
    QFETCH(QString, bound);
    QFETCH(QString, next);
    const Report report = exampleReport(example.toStdString(), settings);
    QCOMPARE(report.answers.size(), std::size_t{4});
    QCOMPARE(text(report.findAnswer("fits")->headline), fits);
    QCOMPARE(text(report.findAnswer("bound")->headline), bound);
    QCOMPARE(text(report.findAnswer("next")->headline), next);
    QCOMPARE(report.findAnswer("fits")->tone, fits == "Yes" ? ReportTone::Good : ReportTone::Error);
    QCOMPARE(text(report.findAnswer("fits")->sentence).contains("; the largest array is "), fits != "Yes");
    for (const ReportAnswer& answer : report.answers)
        QVERIFY2(!answer.sentence.empty(), answer.id.c_str());
}

void TestBuildReport::advisedChangeIsAsFastAsSaid()
{
    const Report report = exampleReport("wide_mlp");
    const Report changed = exampleReport("wide_mlp", {"mesh.data=8", "mesh.model=1"});
    const double saved = figureOf(report, "breakdown", "Step") - figureOf(changed, "breakdown", "Step");
    QVERIFY(std::fabs(*report.findAnswer("next")->value.number - saved) < 1e-12);
    QCOMPARE(text(report.findAnswer("next")->command),
        "meshwright report wide_mlp.yaml --set mesh.data=8 --set mesh.model=1 -o report.html");
    const auto tables = blocksOf<ReportTable>(report, "tried");
    const auto row = rowOf(tables.at(0), "mesh data=8, model=1");
    QVERIFY(row && row->cells[1].number);
    QCOMPARE(*row->cells[1].number, figureOf(changed, "breakdown", "Step"));
}

void TestBuildReport::advisedBatchFits()
{
    const Words settings = {"batch=4194304"};
    QVERIFY(analysed(exampleSource("wide_mlp", {"batch=262144"}))->simulated->simulation.fits);
    QVERIFY(!analysed(exampleSource("wide_mlp", {"batch=524288"}))->simulated->simulation.fits);
    const auto trials = trialsOf(*analysed(exampleSource("wide_mlp", settings)), 20);
    const auto split
        = std::find_if(trials.begin(), trials.end(), [](const ReportTrial& trial) { return trial.what.starts_with("weights"); });
    QVERIFY(split != trials.end());
    QCOMPARE(text(split->whyNot), QString());
    QVERIFY(!split->fits); // it is not the weights that take the memory
}

void TestBuildReport::trialsStop()
{
    const auto analysis = analysed(exampleSource("wide_mlp"));
    std::stop_source stop;
    stop.request_stop();
    QVERIFY(trialsOf(*analysis, 20, stop.get_token()).empty());
    QVERIFY(trialsOf(*analysis, 0).empty());
    QCOMPARE(trialsOf(*analysis, 2).size(), std::size_t{2});
}

void TestBuildReport::sectionsAreThere()
{
    QStringList ids;
    for (const ReportSection& section : exampleReport("wide_mlp").sections)
        ids << text(section.id);
    QCOMPARE(ids.join(' '), "tried layouts machine collectives breakdown timeline memory training problems origin");
}

void TestBuildReport::breakdownAddsUp_data()
{
    QTest::addColumn<QString>("example");
    for (const char* name : {"wide_mlp", "fsdp", "three_d", "zero1", "phases"})
        QTest::newRow(name) << name;
}

void TestBuildReport::breakdownAddsUp()
{
    QFETCH(QString, example);
    const Report report = exampleReport(example.toStdString(), {}, {.training = {}, .mostTrials = 0});
    const double step = figureOf(report, "breakdown", "Step");
    QVERIFY(std::fabs(step - figureOf(report, "breakdown", "Compute") - figureOf(report, "breakdown", "Exposed communication"))
        < 1e-12);
    QVERIFY(std::fabs(figureOf(report, "collectives", "Waited for") - figureOf(report, "breakdown", "Exposed communication"))
        < 1e-12);
    // MFU = F / (t D P), by its own inputs.
    const Simulation& s = analysed(exampleSource(example.toStdString()))->simulated->simulation;
    QVERIFY(
        std::fabs(figureOf(report, "breakdown", "Model FLOPs utilisation") - s.modelFlops / (step * 8.0 * s.peakFlopsPerSecond))
        < 1e-12);
    // Kinds at the peak make up what is live.
    double live = 0.0;
    for (const ReportFigures& block : blocksOf<ReportFigures>(report, "memory")) {
        for (const ReportFigure& figure : block.figures)
            live += figure.label.ends_with(" at the peak") ? *figure.value.number : 0.0;
    }
    QVERIFY(live > 0.0 && live <= figureOf(report, "memory", "Peak of a device"));
}

void TestBuildReport::everyFigureOpens()
{
    const Report report = exampleReport("wide_mlp");
    int figures = 0;
    for (const ReportSection& section : report.sections) {
        for (const ReportFigures& block : blocksOf<ReportFigures>(report, section.id.c_str())) {
            for (const ReportFigure& figure : block.figures) {
                ++figures;
                QVERIFY2(!figure.opening.formula.empty() || !figure.opening.text.empty(), figure.label.c_str());
                for (const ReportInput& input : figure.opening.inputs)
                    QVERIFY2(!input.source.empty(), (figure.label + ": " + input.name).c_str());
            }
        }
    }
    QVERIFY(figures > 12);
    for (const ReportAnswer& answer : report.answers)
        QVERIFY2(!answer.opening.empty(), answer.id.c_str());
}

void TestBuildReport::collectivesAreThoseOfTheSimulation()
{
    const Report report = exampleReport("wide_mlp");
    const Simulation& s = analysed(exampleSource("wide_mlp"))->simulated->simulation;
    const ReportTable table = blocksOf<ReportTable>(report, "collectives").at(0);
    QCOMPARE(table.rows.size(), s.collectives.size());
    double exposed = 0.0;
    double before = 1e9;
    for (const ReportRow& row : table.rows) {
        const double waited = *row.cells[7].number;
        QVERIFY(waited <= before);
        before = waited;
        exposed += waited;
        QVERIFY2(!row.opening.text.empty() && !row.opening.formula.empty(), row.cells.back().text.c_str());
    }
    QVERIFY(std::fabs(exposed - s.exposedSeconds) < 1e-12);
    const ReportRow& first = table.rows.front();
    QCOMPARE(text(first.cells[0].text + " " + first.cells[1].text + " " + first.cells.back().text),
        "all-reduce model act.layers.2.product");
    QCOMPARE(*first.cells[4].number, 256.0 * 1024.0 * 1024.0);
    QVERIFY(text(first.opening.text).contains("It comes from sharding.layers.1.w."));
    // The link's rate opens to where it was found.
    const auto link = std::find_if(first.opening.inputs.begin(), first.opening.inputs.end(),
        [](const ReportInput& input) { return input.name == "w along y"; });
    QVERIFY(link != first.opening.inputs.end());
    QVERIFY(text(link->source).startsWith("catalogue: "));
}

void TestBuildReport::layoutsShareRows()
{
    const Report report = exampleReport("wide_mlp");
    const ReportTable table = blocksOf<ReportTable>(report, "layouts").at(0);
    // [8192, 8192] of f32 cut in two: 128 MiB, on the 4 devices of a data group.
    const auto row = rowOf(table, "layers.1.w");
    QVERIFY(row);
    QCOMPARE(text(row->cells[0].text), "layers.1.w, new.layers.1.w and 1 more");
    QCOMPARE(text(row->cells[2].text), "P(None, 'model')");
    QCOMPARE(text(row->cells[3].text), "f32[8192,4096]");
    QCOMPARE(*row->cells[4].number, 128.0 * 1024.0 * 1024.0);
    QCOMPARE(*row->cells[5].number, 4.0);
    QVERIFY(text(row->opening.text).contains("grad.layers.1.w"));
    QVERIFY(table.rows.size() < analysed(exampleSource("wide_mlp"))->arrays.size() / 2);

    const auto pictures = blocksOf<ReportPictures>(report, "layouts").at(0).pictures;
    QVERIFY(pictures.size() >= 4 && pictures.size() <= 8);
    for (const ReportPicture& picture : pictures) {
        QVERIFY(!picture.list.items.empty() && !picture.list.title.empty());
        QVERIFY(!picture.caption.empty());
    }
}

void TestBuildReport::withoutHardware()
{
    const Report report = exampleReport("wide_mlp", {"hardware=null"});
    QCOMPARE(text(report.findAnswer("fits")->headline), "Not known");
    QCOMPARE(text(report.findAnswer("next")->headline), "Name the hardware");
    QVERIFY(report.findSection("timeline") == nullptr && report.findSection("machine") == nullptr);
    const ReportTable table = blocksOf<ReportTable>(report, "collectives").at(0);
    QCOMPARE(table.rows.size(), std::size_t{12}); // what is sent is known without a machine, how long it takes is not
    QCOMPARE(table.columns.size(), std::size_t{6});
}

void TestBuildReport::meshTooLarge()
{
    const Report report = exampleReport("digits", {"mesh.data=100", "sharding={}"});
    QCOMPARE(text(report.findAnswer("fits")->sentence), "The mesh data=100,model=2 needs 200 devices, the hardware has 8.");
    const auto problems = blocksOf<ReportProblems>(report, "problems").at(0).problems;
    QCOMPARE(text(problems.front().id), "MW1430");
    QVERIFY(text(problems.front().where).startsWith("digits.yaml:"));
    QVERIFY(report.findSection("machine") != nullptr);
}

void TestBuildReport::brokenStudy()
{
    const auto analysis = analysed({"meshwright: 1\nmodel: {mlp: {layers: [4]}}\n", "/some/where/broken.yaml", {}});
    const Report report = reportOf(*analysis);
    QCOMPARE(text(report.title), "broken.yaml");
    QCOMPARE(text(report.findAnswer("next")->headline), "Fix the study");
    QCOMPARE(text(report.findAnswer("next")->command), "meshwright check broken.yaml");
    QVERIFY(!blocksOf<ReportProblems>(report, "problems").empty());
    QVERIFY(report.findSection("layouts") != nullptr);
}

void TestBuildReport::programStudy()
{
    StudySource source = exampleSource("digits");
    source.text = "meshwright: 1\nname: p\nhardware: {chip: v5e, topology: [4, 2]}\nmodel: {program: mlp.mlir}\nmesh: {data: 4, "
                  "model: 2}\n";
    const Report report = reportOf(*analysed(source));
    QVERIFY2(report.findSection("timeline") != nullptr, reportMarkdown(report).c_str());
    QVERIFY(text(report.findAnswer("speed")->value.text).endsWith("steps/s"));
    QVERIFY(paragraphs(report, "training").contains("has no training"));
}

void TestBuildReport::reportsTraining()
{
    const Report report = exampleReport("digits", {"train.steps=3"}, {.training = trainedExample("digits")});
    QCOMPARE(figureOf(report, "training", "Steps"), 3.0);
    const auto figures = blocksOf<ReportFigures>(report, "training");
    QCOMPARE(text(findFigure(figures, "Collectives as predicted")->value.text), "10 of 10");
    QVERIFY(paragraphs(report, "training").contains("Equal to one device"));
    QVERIFY(!paragraphs(report, "training").contains("another study"));
    QCOMPARE(blocksOf<ReportPictures>(report, "training").at(0).pictures.size(), std::size_t{2});
    QVERIFY(!report.trainingResult.empty());
    QCOMPARE(text(report.command), "meshwright report digits.yaml --set train.steps=3 --train -o report.html");

    const Report without = exampleReport("digits");
    QVERIFY(paragraphs(without, "training").startsWith("Not measured."));
    QCOMPARE(text(blocksOf<ReportCode>(without, "training").at(0).text), "meshwright report digits.yaml --train -o report.html");
}

void TestBuildReport::trainingOfAnotherStudy()
{
    const Report report = exampleReport("digits", {"mesh.data=2", "mesh.model=4"}, {.training = trainedExample("digits")});
    QVERIFY(paragraphs(report, "training").contains("of another study"));
}

void TestBuildReport::failedVerification()
{
    MeasuredTraining training = trainedExample("digits");
    training.verification->passed = false;
    training.verification->tensors.back().passed = false;
    const Report report = exampleReport("digits", {}, {.training = training});
    QVERIFY(paragraphs(report, "training").contains("DIFFERENT from one device: 1 of"));
    QCOMPARE(
        text(blocksOf<ReportTable>(report, "training").at(0).rows.front().cells.back().text), "different"); // the worst first
}

void TestBuildReport::noFolderInIt()
{
    const std::string folder = (resourcesDirectory() / "examples").string();
    for (const Words& settings : {Words{}, Words{"train.data={file: nowhere.csv}"}, Words{"mesh.data=100", "sharding={}"}}) {
        const Report report = exampleReport("digits", settings);
        QVERIFY(!text(reportHtml(report)).contains(text(folder)));
    }
    const Report missing = exampleReport("digits", {"train.data={file: nowhere.csv}"});
    QVERIFY(text(blocksOf<ReportProblems>(missing, "problems").at(0).problems.front().message).contains("nowhere.csv"));
}

void TestBuildReport::sameTwice()
{
    const StudySource source = exampleSource("three_d");
    Session first(valueOf(defaultCatalogue()));
    Session second(valueOf(defaultCatalogue()));
    const Report a = reportOf(*first.analyse(source));
    const Report b = reportOf(*second.analyse(source));
    QVERIFY(a == b);
    QVERIFY(reportHtml(a) == reportHtml(b));
}

void TestBuildReport::commands()
{
    QCOMPARE(text(commandText("check", "/a/b/it's.yaml", {"sharding.x=P('data')", "batch=8"})),
        "meshwright check \"it's.yaml\" --set \"sharding.x=P('data')\" --set batch=8");
    QCOMPARE(text(commandText("report", "", {}, "-o r.html")), "meshwright report study.yaml -o r.html");
    QCOMPARE(withSettings({"mesh.data=2", "batch=4"}, {"mesh.data=8"}), (Words{"batch=4", "mesh.data=8"}));
}

void TestBuildReport::pipelines_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<Words>("settings");
    QTest::addColumn<int>("stages");
    QTest::newRow("gpipe") << "pipeline_gpipe" << Words{} << 4;
    QTest::newRow("interleaved") << "pipeline_interleaved" << Words{} << 2;
    QTest::newRow("a transformer") << "pipeline_transformer" << Words{} << 2;
    QTest::newRow("microbatches alone") << "pipeline_gpipe" << Words{"pipeline={microbatches: 4}", "mesh={data: 1}"} << 1;
}

/// A report of a pipeline tells of one stage's device: its memory, its kernels as often as they run, its arrays.
void TestBuildReport::pipelines()
{
    QFETCH(QString, example);
    QFETCH(Words, settings);
    QFETCH(int, stages);
    const Report report = exampleReport(example.toStdString(), settings, {.mostTrials = 0});

    // What is live is the peak, and nothing of it is negative.
    const auto memory = blocksOf<ReportFigures>(report, "memory");
    QVERIFY(!memory.empty());
    double live = 0.0;
    double peak = 0.0;
    for (const ReportFigure& figure : memory.front().figures) {
        if (figure.label == "Peak of a device")
            peak = figure.value.number.value();
        else if (figure.label.ends_with(" at the peak"))
            live += figure.value.number.value();
        for (const auto& input : figure.opening.inputs)
            QVERIFY2(input.value.find("-") == std::string::npos, input.value.c_str());
    }
    QVERIFY(peak > 0.0);
    QCOMPARE(live, peak);

    // The kernels of the roofline are all of the computing.
    double shares = 0.0;
    for (const ReportParagraph& paragraph : blocksOf<ReportParagraph>(report, "breakdown")) {
        const QString text = QString::fromStdString(paragraph.text);
        static const QRegularExpression kShare(R"(([\d.]+) % of the computing is in|, ([\d.]+) % in |, ([\d.]+) % in )");
        for (auto match = kShare.globalMatch(text); match.hasNext();) {
            const QRegularExpressionMatch one = match.next();
            shares += (one.captured(1) + one.captured(2) + one.captured(3)).toDouble();
        }
    }
    QVERIFY2(shares > 97.0 && shares < 102.0, qPrintable(QString::number(shares)));

    // Arrays of a stage lie on its devices: each row says which.
    const auto layouts = blocksOf<ReportTable>(report, "layouts");
    QVERIFY(!layouts.empty());
    QCOMPARE(layouts.front().columns.back().title == "Stages", stages > 1);
    const auto step = blocksOf<ReportFigures>(report, "breakdown");
    QCOMPARE(step.front().figures.front().opening.text.find("All devices do the same") == std::string::npos, stages > 1);
}

MESHWRIGHT_TEST(TestBuildReport)

} // namespace tst_build_report

#include "tst_build_report.moc"
