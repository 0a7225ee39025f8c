// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "sim/session/search_study.h"
#include "tests/test_class.h"
#include "ui/search/plan_copies.h"
#include "ui/search/plans_model.h"
#include "ui/search/plans_picture.h"
#include "ui/search/search_view.h"
#include "ui/widgets/notice.h"
#include "ui/widgets/picture_view.h"

#include <QAbstractItemModelTester>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QTableView>

namespace tst_search_view {

using namespace meshwright;

/// A person searches, reads why plans win and lose, and takes one.
class TestSearchView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theModelKeepsItsPromises();
    void whatDoesNotFitIsGreyAndSaysWhy();
    void thePictureHasADiscForEachPlan();
    void estimatesComeAfterWhatIsSimulated();
    void whatWasSimulatedAndDoesNotFitComesLast();
    void aPlanIsCopiedForOtherPrograms();
    void plansAreSimulatedBeforeTheirReader();
    void aPlanBecomesTheStudy();
    void aPlanInNoFileIsNoStudy();
    void aTransformersPlanKeepsTheUsersChoices();
    void saysWhenTheStudyIsAnotherOne();
    void aSearchCanBeCancelled();
    void withoutAStudySaysHowToCome();
    void aStudyWithoutHardwareSaysSo();
};

namespace {

std::shared_ptr<const sim::Catalogue> catalogue()
{
    static const auto all = std::make_shared<const sim::Catalogue>(valueOf(sim::defaultCatalogue()));
    return all;
}

std::shared_ptr<const sim::Analysis> analysed(const std::string& example, const std::vector<std::string>& settings = {})
{
    const std::string path = (resourcesDirectory() / "examples" / example).string();
    return sim::analysed({valueOf(readFile(path)), path, settings}, *catalogue(), {}, false);
}

sim::FoundPlan plan(std::int64_t data, double seconds, double gib)
{
    sim::FoundPlan one;
    one.mesh = {{"data", data}, {"model", 8 / data}};
    one.modelSeconds = seconds;
    one.peakBytes = gib * 1024 * 1024 * 1024;
    one.capacityBytes = 16.0 * 1024 * 1024 * 1024;
    one.fits = true;
    one.why = {"+12 % exposed all-reduce over model"};
    return one;
}

std::shared_ptr<const ui::FoundPlans> threePlans()
{
    auto found = std::make_shared<ui::FoundPlans>();
    found->plans = {plan(8, 0.010, 8.0), plan(4, 0.012, 6.0), plan(2, 0.020, 4.0)};
    found->result.plans = found->plans;
    found->result.templates = {{"data parallel", "data=8", false, 0.0, 0.0, "needs 93.2 GiB of 16.0 GiB"},
        {"FSDP", "fsdp=8", true, 0.011, 0.1, "as quick"}};
    return found;
}

/// A view in which a search of the study is over.
struct Searched {
    explicit Searched(const std::shared_ptr<const sim::Analysis>& analysis)
    {
        view.resize(1000, 640);
        view.show();
        view.setAnalysis(analysis);
        view.search();
    }

    QTableView* table() { return view.findChild<QTableView*>(); }

    ui::Selection selection;
    ui::SearchView view{selection, catalogue()};
};

} // namespace

void TestSearchView::theModelKeepsItsPromises()
{
    ui::PlansModel model;
    const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
    QCOMPARE(model.rowCount(), 0);
    model.setPlans(threePlans());
    QCOMPARE(model.rowCount(), 4);
    QCOMPARE(model.index(1, ui::PlansModel::Mesh).data().toString(), QString("data=4 model=2"));
    QCOMPARE(model.index(1, ui::PlansModel::Step).data().toString(), QString("~ 12.0 ms")); // an estimate
    QCOMPARE(model.index(1, ui::PlansModel::Memory).data().toString(), QString("6.00 GiB"));
}

void TestSearchView::whatDoesNotFitIsGreyAndSaysWhy()
{
    ui::PlansModel model;
    model.setPlans(threePlans());
    QCOMPARE(model.index(3, ui::PlansModel::Mesh).data().toString(), QString("data=8 (data parallel)"));
    QCOMPARE(model.index(3, ui::PlansModel::Note).data().toString(), QString("needs 93.2 GiB of 16.0 GiB"));
    QVERIFY(!(model.flags(model.index(3, 0)) & Qt::ItemIsEnabled));
    QVERIFY(model.flags(model.index(2, 0)) & Qt::ItemIsEnabled);
    QCOMPARE(model.planOf(2), 2);
    QCOMPARE(model.planOf(3), -1);
}

void TestSearchView::thePictureHasADiscForEachPlan()
{
    const auto found = std::make_shared<ui::FoundPlans>(*threePlans());
    for (sim::FoundPlan& plan : found->plans)
        plan.memory = {{"reserve", 2.0 * 1024 * 1024 * 1024}};
    const DisplayList picture = ui::plansPicture(*found, 1, 600.0, 400.0);
    std::map<std::string, RectShape> discs;
    std::vector<std::string> texts;
    for (const DisplayItem& item : picture.items) {
        if (const auto* text = std::get_if<TextShape>(&item.shape))
            texts.push_back(text->text);
        if (item.id.starts_with("plan:"))
            discs[item.id] = std::get<RectShape>(item.shape);
    }
    QCOMPARE(discs.size(), std::size_t{3});
    QCOMPARE(std::ranges::count(texts, "14.0 GiB of a device are usable"), std::ptrdiff_t{1}); // as the fit is judged
    QVERIFY(discs["plan:0"].topLeft.x < discs["plan:1"].topLeft.x && discs["plan:1"].topLeft.x < discs["plan:2"].topLeft.x);
    QVERIFY(discs["plan:0"].topLeft.y < discs["plan:2"].topLeft.y); // needs more memory
    QVERIFY(discs["plan:1"].width > discs["plan:0"].width); // chosen
    for (const auto& [id, disc] : discs)
        QVERIFY(disc.topLeft.x >= 0.0 && disc.topLeft.x + disc.width <= 600.0 && disc.topLeft.y + disc.height <= 400.0);
}

/// A plan whose estimate is short is not faster than one that was simulated.
void TestSearchView::estimatesComeAfterWhatIsSimulated()
{
    const auto found = std::make_shared<ui::FoundPlans>(*threePlans());
    found->plans[2].simulatedSeconds = 0.023;
    found->plans[1].simulatedSeconds = 0.014;
    ui::PlansModel model;
    model.setPlans(found);
    QSortFilterProxyModel sorted;
    sorted.setSourceModel(&model);
    sorted.setSortRole(ui::PlansModel::kSortRole);
    sorted.sort(ui::PlansModel::Step);
    QStringList steps;
    for (int row = 0; row < 3; ++row)
        steps << sorted.index(row, ui::PlansModel::Step).data().toString();
    QCOMPARE(steps, (QStringList{"14.0 ms", "23.0 ms", "~ 10.0 ms"}));
}

/// While the plans are simulated those that turn out not to fit stay in the list.
void TestSearchView::whatWasSimulatedAndDoesNotFitComesLast()
{
    const auto found = std::make_shared<ui::FoundPlans>(*threePlans());
    sim::FoundPlan& large = found->plans[0];
    large.simulatedSeconds = 0.009;
    large.peakBytes = 2.0 * large.capacityBytes;
    large.fits = false;
    large.why.clear();
    ui::PlansModel model;
    model.setPlans(found);
    QSortFilterProxyModel sorted;
    sorted.setSourceModel(&model);
    sorted.setSortRole(ui::PlansModel::kSortRole);
    sorted.sort(ui::PlansModel::Step);
    QCOMPARE(sorted.index(0, ui::PlansModel::Step).data().toString(), QString("~ 12.0 ms"));
    QVERIFY(!sorted.index(0, 0).data(Qt::ForegroundRole).isValid());
    QCOMPARE(sorted.index(2, ui::PlansModel::Step).data().toString(), QString("9.00 ms"));
    QCOMPARE(sorted.index(2, ui::PlansModel::Note).data().toString(), QString("needs 32.0 GiB of 16.0 GiB"));
    QVERIFY(sorted.index(2, 0).data(Qt::ForegroundRole).isValid());
}

void TestSearchView::aPlanIsCopiedForOtherPrograms()
{
    ui::FoundPlans found;
    found.study = analysed("transformer_64.yaml")->study;
    sim::FoundPlan plan;
    plan.mesh = {{"fsdp", 32}, {"tensor", 2}};
    plan.specs = {{"embedding.w", "P('fsdp', None)"}};
    plan.recompute = "full";
    plan.microbatch = 1.0;
    plan.zeroStage = 3;
    std::map<QString, ui::PlanCopy> copies;
    for (const ui::PlanCopy& copy : ui::copiesOf(found, plan, *catalogue()))
        copies[copy.title] = copy;
    QCOMPARE(copies["JAX mesh and specs"].text,
        QString("import jax\nfrom jax.sharding import PartitionSpec as P\n\nmesh = jax.make_mesh((32, 2), ('fsdp', 'tensor'), "
                "axis_types=(jax.sharding.AxisType.Auto,) * 2)\n"
                "specs = {\n    'embedding.w': P('fsdp', None),\n}\n"));
    QVERIFY(copies["MaxText command"].text.contains("dcn_fsdp_parallelism=8 ici_fsdp_parallelism=4 ici_tensor_parallelism=2"));
    QVERIFY(copies["accelerate command"].text.isEmpty());
    QVERIFY(copies["accelerate command"].whyNot.contains("splits data"));
}

/// Each row that is simulated is seen at once, and a chosen one stays chosen.
void TestSearchView::plansAreSimulatedBeforeTheirReader()
{
    const auto analysis = analysed("transformer_64.yaml");
    Searched searched(analysis);
    std::vector<std::size_t> simulated; // plans with a simulated step, each time
    bool isOver = false;
    const auto mesh = [&] { return searched.table()->currentIndex().siblingAtColumn(ui::PlansModel::Mesh).data().toString(); };
    QString chosen; // its mesh
    connect(
        &searched.view.job(), &ui::SearchJob::found, this, [&](const std::shared_ptr<const ui::FoundPlans>& found, bool isLast) {
            simulated.push_back(static_cast<std::size_t>(std::count_if(found->plans.begin(), found->plans.end(),
                [](const sim::FoundPlan& plan) { return plan.simulatedSeconds.has_value(); })));
            isOver = isLast;
            if (chosen.isEmpty()) { // at the first rows
                searched.table()->selectRow(0);
                chosen = mesh();
            }
        });
    QTRY_VERIFY_WITH_TIMEOUT(isOver, 600'000);
    QVERIFY2(simulated.size() >= 4, qPrintable(QString::number(simulated.size())));
    QCOMPARE(simulated.front(), std::size_t{0});
    QCOMPARE(simulated[1], std::size_t{1});
    QCOMPARE(simulated[2], std::size_t{2});
    QCOMPARE(mesh(), chosen);
    const auto labels = searched.view.findChildren<QLabel*>();
    QVERIFY(std::any_of(labels.begin(), labels.end(),
        [](const QLabel* label) { return label->text().contains(" simulated, ") && label->text().contains(": gap "); }));
}

/// What the row says is what the study that it becomes gives.
void TestSearchView::aPlanBecomesTheStudy()
{
    const auto analysis = analysed("digits.yaml");
    Searched searched(analysis);
    QTRY_VERIFY_WITH_TIMEOUT(!searched.view.job().isBusy() && searched.table()->model()->rowCount() > 1, 60'000);
    QSignalSpy chosen(&searched.view, &ui::SearchView::planChosen);
    auto* table = searched.table();
    for (const int row : {0, 1}) {
        QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(table->model()->index(row, 0)).center());
        QCOMPARE(chosen.count(), row + 1);
        QCOMPARE(table->currentIndex().row(), row);
        const auto text = chosen.last().at(0).value<std::string>();
        const auto taken = sim::analysed({text, analysis->source.file, {}}, *catalogue(), {}, false);
        QVERIFY2(taken->simulated, describe(taken->problems).c_str());
        const QString step = table->model()->index(row, ui::PlansModel::Step).data().toString();
        QCOMPARE(step.toStdString(), formatSeconds(taken->simulated->simulation.stepSeconds));
        QString mesh = QString::fromStdString(taken->mesh().text()).replace(QLatin1Char(','), QLatin1Char(' '));
        QCOMPARE(table->model()->index(row, ui::PlansModel::Mesh).data().toString(), mesh);
        searched.view.setAnalysis(taken);
        QVERIFY(!searched.view.findChild<ui::Notice*>()->isVisible()); // it is still about this study
    }
    auto* picture = searched.view.findChild<ui::PictureView*>();
    QVERIFY(picture->placeOf("plan:0") != QPoint());
    QTest::mouseClick(picture, Qt::LeftButton, {}, picture->placeOf("plan:0"));
    QCOMPARE(chosen.count(), 3);
}

void TestSearchView::aPlanInNoFileIsNoStudy()
{
    sim::FoundPlan laidOut = plan(8, 1.0, 1.0);
    laidOut.program = std::make_shared<const Program>();
    const auto study = ui::SearchJob::studyOf({}, laidOut, *catalogue());
    QVERIFY(!study);
    QCOMPARE(study.error().front().id, std::string("MW1754"));
}

/// Name, optimizer and training are the user's, and the study that was taken has a command that follows what is changed in it.
void TestSearchView::aTransformersPlanKeepsTheUsersChoices()
{
    const auto analysis = analysed("transformer_64.yaml", {"name=mine", "optimizer.adam.learning_rate=0.0007", "train.steps=77"});
    ui::FoundPlans found;
    found.study = analysis->study;
    const sim::Calibration& calibration = valueOf(sim::defaultCalibration());
    sim::SearchOptions options;
    options.top = 1;
    options.threads = 1;
    const auto result = valueOf(sim::searchStudy(*analysis->study, *catalogue(), calibration,
        {{"fsdp", "16"}, {"tensor", "4"}, {"pipeline", "1"}, {"context", "1"}, {"recompute", "full"}}, options));
    QVERIFY(!result.plans.empty());
    const std::string text = valueOf(ui::SearchJob::studyOf(found, result.plans.front(), *catalogue()));
    const Study taken = valueOf(readStudy(text, "plan.yaml"));
    QCOMPARE(taken.name, std::string("mine"));
    QCOMPARE(std::get<AdamOptimizer>(taken.optimizer).learningRate, 0.0007);
    QCOMPARE(taken.train.steps, 77);

    const auto commandOf = [&](const std::vector<std::string>& settings) {
        sim::Analysis changed;
        changed.study = std::make_shared<const Study>(valueOf(readStudy(text, "plan.yaml", settings)));
        for (const ui::PlanCopy& copy : ui::copiesOf(changed, *catalogue())) {
            if (copy.title == "torchtitan command" || copy.title == "Command")
                return copy.text.isEmpty() ? copy.whyNot : copy.text;
        }
        return QString();
    };
    QVERIFY2(commandOf({}).contains("--parallelism.data_parallel_shard_degree 16 --parallelism.tensor_parallel_degree 4 "),
        qPrintable(commandOf({})));
    const QString changed = commandOf({"mesh.fsdp=8", "mesh.tensor=8"});
    QVERIFY2(changed.contains("--parallelism.data_parallel_shard_degree 8 --parallelism.tensor_parallel_degree 8 "),
        qPrintable(changed));
    QVERIFY(commandOf({"recompute=none"}).endsWith(" activation-checkpoint:none"));
    QVERIFY2(commandOf({"sharding.embedding.w=P()"}).contains("in the window: Search"), "no framework has this layout");
    for (const Study& other : {valueOf(readStudy(text, "plan.yaml", std::vector<std::string>{"sharding.embedding.w=P()"})),
             *analysed("digits.yaml")->study}) {
        const auto plan = sim::planOf(other, *catalogue(), calibration);
        QVERIFY(!plan);
        QCOMPARE(plan.error().front().id, std::string("MW1758"));
    }
}

void TestSearchView::saysWhenTheStudyIsAnotherOne()
{
    Searched searched(analysed("digits.yaml"));
    QTRY_VERIFY_WITH_TIMEOUT(!searched.view.job().isBusy() && searched.table()->model()->rowCount() > 1, 60'000);
    auto* notice = searched.view.findChild<ui::Notice*>();
    QVERIFY(!notice->isVisible());
    searched.view.setAnalysis(analysed("digits.yaml", {"batch=64"}));
    QVERIFY(notice->isVisible());
    searched.view.setAnalysis(analysed("digits.yaml"));
    QVERIFY(!notice->isVisible());
    searched.view.setAnalysis(analysed("digits.yaml", {"mesh={data: 8}"})); // another layout: the same plans
    QVERIFY(!notice->isVisible());
}

void TestSearchView::aSearchCanBeCancelled()
{
    Searched searched(analysed("transformer_64.yaml"));
    QVERIFY(searched.view.job().isBusy());
    const auto buttons = searched.view.findChildren<QPushButton*>();
    QVERIFY(!buttons[0]->isEnabled() && buttons[1]->isEnabled());
    buttons[1]->click();
    QVERIFY(!searched.view.job().isBusy());
    QVERIFY(buttons[0]->isEnabled() && !buttons[1]->isEnabled());
    QTest::qWait(50); // nothing comes any more
    QCOMPARE(searched.table()->model()->rowCount(), 0);

    QVERIFY(QTest::qWaitForWindowActive(&searched.view));
    searched.view.search();
    QVERIFY(searched.view.job().isBusy());
    QTest::keyClick(&searched.view, Qt::Key_Escape);
    QVERIFY(!searched.view.job().isBusy());
}

void TestSearchView::withoutAStudySaysHowToCome()
{
    ui::Selection selection;
    ui::SearchView view(selection, catalogue());
    const auto says = [&](const QString& words) {
        const auto labels = view.findChildren<QLabel*>();
        return std::any_of(labels.begin(), labels.end(), [&](const QLabel* label) { return label->text().contains(words); });
    };
    QVERIFY(says("from the start page"));
    view.setAnalysis(analysed("digits.yaml"));
    QVERIFY(!says("from the start page") && says("Search to see"));
}

void TestSearchView::aStudyWithoutHardwareSaysSo()
{
    Searched searched(analysed("digits.yaml", {"hardware="}));
    QTRY_VERIFY(!searched.view.job().isBusy());
    const auto labels = searched.view.findChildren<QLabel*>();
    QVERIFY(std::any_of(labels.begin(), labels.end(),
        [](const QLabel* label) { return label->isVisible() && label->text().contains("choose a chip"); }));
    QCOMPARE(searched.table()->model()->rowCount(), 0);
    QVERIFY(!searched.table()->isVisible()); // which would be a large blank
    QVERIFY(!searched.view.findChild<QPushButton*>()->isEnabled());
    (void)searched.view.grab();
    (void)searched.view.picture();
}

MESHWRIGHT_TEST(TestSearchView)

} // namespace tst_search_view

#include "tst_search_view.moc"
