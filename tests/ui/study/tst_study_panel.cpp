// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "tests/test_class.h"
#include "ui/models/selection.h"
#include "ui/models/study_document.h"
#include "ui/study/legal_spin_box.h"
#include "ui/study/spec_edit.h"
#include "ui/study/spec_model.h"
#include "ui/study/spec_tree.h"
#include "ui/study/study_panel.h"
#include "ui/study/tone_label.h"
#include "ui/theme/theme.h"

#include <QAbstractItemModelTester>
#include <QDir>
#include <QScrollArea>

namespace tst_study_panel {

using namespace meshwright;
using namespace meshwright::ui;

/// What people do in the study panel, with a document behind it as in the window.
class TestStudyPanel : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();

    void steppersStopAtLegalSizes();
    void aTypedSizeSaysWhyItIsRefused();
    void aTypedSizeMayExceedTheHardware();
    void theSliderRunsAlongAllMeshes();
    void theProductIsComparedWithTheChips();
    void axesAreRenamedEverywhere();
    void axesComeAndGo();
    void hoveringAnAxisLightsItUp();

    void chipsAreFoundByAnyName();
    void tabGoesFromAChipToWhatCountsIt_data();
    void tabGoesFromAChipToWhatCountsIt();
    void aChipIsTakenAsItIsFound_data();
    void aChipIsTakenAsItIsFound();
    void machinesAreTypedWithTheirCounts_data();
    void machinesAreTypedWithTheirCounts();
    void anotherKindOfChipBringsItsOwnCounts();
    void aWrongTopologySaysWhy();

    void aTorusHasSlices();
    void layersAreEditedAsText();
    void choicesOfTheModel();
    void choicesOfATransformer();
    void modelsThatCannotBeRead_data();
    void modelsThatCannotBeRead();
    void microbatchesNeedNoStages_data();
    void microbatchesNeedNoStages();
    void whatIsShownIsNotShownAgain();
    void shortNamesAreWhole();
    void aPipelineIsChosenAndLeft();
    void problemsStandAtTheirFields();
    void programFilesHideTheModel();

    void aBadSpecIsUnderlinedAtItsToken_data();
    void aBadSpecIsUnderlinedAtItsToken();
    void theNearestSpecIsOnAButton();
    void axisNamesAreCompleted();
    void specsAreCommittedRightOrWrong();
    void specsAreRemoved();
    void aSpecSaysWhatItMeans();
    void specsThatFollowAreGrey();
    void arraysAreSelectedBothWays();
    void arraysAreAModel();

    void fixesAreAppliedOnAClick();
    void problemsLeadToTheirFields_data();
    void problemsLeadToTheirFields();
    void unreadableTextsCannotBeEdited();

    void typingIsNotDisturbed();
    void theWheelScrollsThePanel();
    void keyboardOrder_data();
    void keyboardOrder();
    void everythingHasAName();
    void followsTheTheme();
    void nothingIsCutAtTheLeastWidth_data();
    void nothingIsCutAtTheLeastWidth();
};

namespace {

/// A panel, and the document that takes its edits.
struct Bench {
    explicit Bench(const QString& name, const QStringList& settings = {})
        : Bench(sim::StudySource{valueOf(readFile(pathOf(name))), pathOf(name).string(), {}}, settings)
    {
    }

    Bench(sim::StudySource source, const QStringList& settings)
        : panel(selection, session().catalogue())
    {
        for (const QString& one : settings)
            source.settings.push_back(one.toStdString());
        QObject::connect(&panel, &StudyPanel::settingsChanged, &document, [this](const QStringList& changed) {
            edits << changed.join(QLatin1String("; "));
            document.change(changed, QStringLiteral("edit"));
        });
        QObject::connect(&document, &StudyDocument::sourceChanged, &panel, [this] {
            panel.setSource(document.source());
            panel.setAnalysis(session().analyse(document.source()));
        });
        document.adopt(std::move(source), {});
        panel.resize(340, 1300);
        panel.show();
        shown = QTest::qWaitForWindowExposed(&panel);
    }

    static std::filesystem::path pathOf(const QString& name) { return resourcesDirectory() / "examples" / name.toStdString(); }

    static sim::Session& session()
    {
        static sim::Session session(valueOf(sim::defaultCatalogue()));
        return session;
    }

    /// The widget of an accessible name; null when there is none that can be seen.
    template <typename T>
    T* find(const QString& name) const
    {
        for (T* widget : panel.findChildren<T*>()) {
            if (widget->accessibleName() == name && !widget->isHidden())
                return widget;
        }
        return nullptr;
    }

    QPushButton* button(const QString& text) const
    {
        for (QPushButton* one : panel.findChildren<QPushButton*>()) {
            if (one->text() == text && one->isVisible())
                return one;
        }
        return nullptr;
    }

    /// All notes that can be seen, one a line.
    QString notes() const
    {
        QStringList lines;
        for (const ToneLabel* label : panel.findChildren<ToneLabel*>()) {
            if (label->isVisible() && !label->text().isEmpty())
                lines << label->text();
        }
        return lines.join(QLatin1Char('\n'));
    }

    QTreeView& tree() const { return *panel.findChild<QTreeView*>(); }
    SpecModel& model() const { return *panel.findChild<SpecModel*>(); }

    /// A click on the spec of an array, as people do.
    SpecEdit* editSpec(const QString& array)
    {
        const QModelIndex index = model().indexOf(array, SpecModel::Spec);
        tree().expand(index.parent());
        QTest::mouseClick(tree().viewport(), Qt::LeftButton, {}, tree().visualRect(index).center());
        return tree().findChild<SpecEdit*>();
    }

    QString setting(const char* path) const
    {
        for (const std::string& one : document.source().settings) {
            if (one.starts_with(std::string(path) + "="))
                return QString::fromStdString(one.substr(qstrlen(path) + 1));
        }
        return {};
    }

    Selection selection;
    StudyDocument document;
    StudyPanel panel;
    QStringList edits; ///< since the beginning
    bool shown = false;
};

const QString kNotebook = QStringLiteral("notebook_mlp.yaml");

bool isReddish(QRgb pixel)
{
    return qRed(pixel) - qGreen(pixel) > 60 && qRed(pixel) - qBlue(pixel) > 60;
}

/// Where text at a position begins, in pixels of the widget.
int leftOf(QLineEdit& line, int position)
{
    const int before = line.cursorPosition();
    line.setCursorPosition(position);
    const QRect cursor = line.inputMethodQuery(Qt::ImCursorRectangle).toRect();
    line.setCursorPosition(before);
    return cursor.center().x();
}

/// Return in a spec: the table takes the text once the line has had the key.
void finishSpec(const Bench& bench)
{
    QTest::keyClick(bench.tree().findChild<SpecEdit*>(), Qt::Key_Return);
    QCoreApplication::processEvents();
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
}

void retype(QLineEdit* line, const QString& text)
{
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, text);
}

} // namespace

void TestStudyPanel::initTestCase()
{
    applyTheme(*qApp, ThemeChoice::Light);
}

void TestStudyPanel::steppersStopAtLegalSizes()
{
    Bench bench(kNotebook, {"batch=8184"}); // 8 * 3 * 11 * 31
    auto* data = bench.find<LegalSpinBox>("Size of axis data");
    QVERIFY(data != nullptr);
    QCOMPARE(data->value(), 4);

    // Up is the end: the other axis takes two of the eight devices.
    QStyleOptionSpinBox option;
    option.initFrom(data);
    option.subControls = QStyle::SC_All;
    const QPoint up = data->style()->subControlRect(QStyle::CC_SpinBox, &option, QStyle::SC_SpinBoxUp, data).center();
    const QPoint down = data->style()->subControlRect(QStyle::CC_SpinBox, &option, QStyle::SC_SpinBoxDown, data).center();
    QTest::mouseClick(data, Qt::LeftButton, {}, up);
    QCOMPARE(data->value(), 4);
    QCOMPARE(bench.edits, QStringList());

    QTest::mouseClick(data, Qt::LeftButton, {}, down);
    QCOMPARE(data->value(), 2);
    QTest::keyClick(data, Qt::Key_Down);
    QTest::keyClick(data, Qt::Key_Down);
    QCOMPARE(data->value(), 1);
    QCOMPARE(bench.edits, (QStringList{"mesh.data=2", "mesh.data=1"}));

    // Now the other axis has room: 2, 4, 8.
    auto* model = bench.find<LegalSpinBox>("Size of axis model");
    for (int i = 0; i < 4; ++i)
        QTest::keyClick(model, Qt::Key_Up);
    QCOMPARE(model->value(), 8);
    QCOMPARE(bench.edits.mid(2), (QStringList{"mesh.model=4", "mesh.model=8"}));
}

void TestStudyPanel::aTypedSizeSaysWhyItIsRefused()
{
    Bench bench(kNotebook);
    auto* data = bench.find<LegalSpinBox>("Size of axis data");
    auto* line = data->findChild<QLineEdit*>();
    retype(line, "3");
    const QString why = "\"x\": dim 0 (batch) of size 8192 is not divisible by 3";
    QVERIFY2(bench.notes().contains(why), qPrintable(bench.notes()));
    QTest::keyClick(line, Qt::Key_Return);
    QCOMPARE(bench.edits, QStringList());
    QCOMPARE(line->text(), "3"); // it stays until it is fixed
    QVERIFY(bench.notes().contains(why));

    QTest::keyClick(line, Qt::Key_Escape);
    QCOMPARE(data->value(), 4);
    QVERIFY(!bench.notes().contains(why));

    retype(line, "2");
    QVERIFY(!bench.notes().contains("divisible"));
    QTest::keyClick(line, Qt::Key_Return);
    QCOMPARE(bench.edits, QStringList("mesh.data=2"));
}

void TestStudyPanel::aTypedSizeMayExceedTheHardware()
{
    Bench bench(kNotebook);
    auto* data = bench.find<LegalSpinBox>("Size of axis data");
    auto* line = data->findChild<QLineEdit*>();
    retype(line, "16");
    QVERIFY2(bench.notes().contains("16 x 2 makes 32 devices, the hardware has 8"), qPrintable(bench.notes()));
    QTest::keyClick(line, Qt::Key_Tab);
    QCOMPARE(bench.edits, QStringList("mesh.data=16"));
    QCOMPARE(data->value(), 16);
}

void TestStudyPanel::theSliderRunsAlongAllMeshes()
{
    Bench bench(kNotebook);
    auto* slider = bench.find<QSlider>("Mesh");
    QVERIFY(slider != nullptr);
    QCOMPARE(slider->maximum(), 3); // 8x1, 4x2, 2x4, 1x8
    QCOMPARE(slider->value(), 1);
    QVERIFY(bench.notes().contains("8x1") && bench.notes().contains("1x8"));
    QVERIFY(bench.notes().contains("4x2: 8 devices of 8 chips"));

    QTest::keyClick(slider, Qt::Key_Right);
    QCOMPARE(bench.edits, QStringList("mesh.data=2; mesh.model=4"));
    QVERIFY(bench.notes().contains("2x4: 8 devices of 8 chips"));
    QCOMPARE(bench.find<LegalSpinBox>("Size of axis model")->value(), 4);
    QTest::keyClick(slider, Qt::Key_End);
    QCOMPARE(bench.setting("mesh.model"), "8");
    QTest::keyClick(slider, Qt::Key_Home);
    QCOMPARE(bench.setting("mesh.data"), "8");
    QCOMPARE(slider->value(), 0);

    // Undo moves it back, without another edit.
    const qsizetype before = bench.edits.size();
    while (bench.document.undoStack().canUndo()) // quick moves are one step, slow ones are several
        bench.document.undoStack().undo();
    QCOMPARE(bench.edits.size(), before);
    QCOMPARE(slider->value(), 1);

    // What does not cut evenly is not a position of it.
    Bench uneven(kNotebook, {"batch=100"});
    QCOMPARE(uneven.find<QSlider>("Mesh")->maximum(), 2);
}

void TestStudyPanel::theProductIsComparedWithTheChips()
{
    Bench bench(kNotebook, {"mesh.data=16"});
    QVERIFY2(bench.notes().contains("16x2: 32 devices, but the hardware has 8 chips"), qPrintable(bench.notes()));
    for (const ToneLabel* label : bench.panel.findChildren<ToneLabel*>()) {
        if (label->text().startsWith("16x2"))
            QCOMPARE(label->palette().color(QPalette::WindowText).rgb(), qtColour(ColourRole::Error, Theme::Light).rgb());
    }
    QTest::mouseClick(bench.button("Use 4x2"), Qt::LeftButton);
    QCOMPARE(bench.edits, QStringList("mesh.data=4"));
    QVERIFY(bench.notes().contains("4x2: 8 devices of 8 chips"));
    QVERIFY(bench.button("Use 4x2") == nullptr);

    Bench idle(kNotebook, {"mesh.data=1"});
    QVERIFY2(idle.notes().contains("1x2: 2 devices of 8 chips: 6 left idle"), qPrintable(idle.notes()));
    QVERIFY(idle.button("Use 4x2") != nullptr);

    Bench cores(kNotebook, {"hardware={chip: v3, topology: [2, 2]}"});
    QVERIFY2(cores.notes().contains("8 devices of 4 chips (2 each)"), qPrintable(cores.notes()));
    Bench none(kNotebook, {"hardware="});
    QVERIFY(none.notes().contains("4x2: 8 devices\n"));
}

void TestStudyPanel::axesAreRenamedEverywhere()
{
    Bench bench(kNotebook);
    auto* name = bench.find<QLineEdit>("Name of axis model");
    retype(name, "data");
    QVERIFY2(bench.notes().contains("two mesh axes are named \"data\""), qPrintable(bench.notes()));
    QTest::keyClick(name, Qt::Key_Return);
    QCOMPARE(bench.edits, QStringList());

    retype(name, "tensor");
    QTest::keyClick(name, Qt::Key_Return);
    QCOMPARE(bench.edits.size(), 1);
    QCOMPARE(bench.setting("mesh"), "{data: 4, tensor: 2}");
    QCOMPARE(bench.setting("sharding.layers.1.w"), "P(None, 'tensor')");
    QVERIFY(bench.find<QLineEdit>("Name of axis tensor") != nullptr);
    QVERIFY2(bench.notes().contains("Nothing is wrong."), qPrintable(bench.notes()));
}

void TestStudyPanel::axesComeAndGo()
{
    Bench bench(kNotebook);
    QTest::mouseClick(bench.button("Add axis"), Qt::LeftButton);
    QCOMPARE(bench.edits, QStringList("mesh.fsdp=1"));
    auto* name = bench.find<QLineEdit>("Name of axis fsdp");
    QVERIFY(name != nullptr);
    QCOMPARE(QApplication::focusWidget(), name); // to be typed over
    QTest::keyClicks(name, "pipe");
    QTest::keyClick(name, Qt::Key_Return);
    QCOMPARE(bench.setting("mesh"), "{data: 4, model: 2, pipe: 1}");

    QTest::mouseClick(bench.find<QToolButton>("Remove axis model"), Qt::LeftButton);
    QCOMPARE(bench.setting("mesh"), "{data: 4, pipe: 1}");
    QCOMPARE(bench.setting("sharding.layers.1.w"), "P(None, None)");
    QVERIFY(bench.find<QLineEdit>("Name of axis model") == nullptr);
    QVERIFY2(bench.notes().contains("4x1: 4 devices of 8 chips"), qPrintable(bench.notes()));

    Bench phases("phases.yaml");
    QTest::keyClick(phases.find<LegalSpinBox>("Size of axis data"), Qt::Key_Down);
    QCOMPARE(phases.edits, QStringList("phases[0].mesh.data=4")); // the first phase is what is shown
}

void TestStudyPanel::hoveringAnAxisLightsItUp()
{
    Bench bench(kNotebook);
    QWidget* row = bench.find<LegalSpinBox>("Size of axis model")->parentWidget();
    QEnterEvent enter({}, {}, {});
    QCoreApplication::sendEvent(row, &enter);
    QCOMPARE(bench.selection.hoveredAxis(), "model");
    QEvent leave(QEvent::Leave);
    QCoreApplication::sendEvent(row, &leave);
    QCOMPARE(bench.selection.hoveredAxis(), QString());
}

void TestStudyPanel::tabGoesFromAChipToWhatCountsIt_data()
{
    QTest::addColumn<QString>("before");
    QTest::addColumn<QString>("typed");
    QTest::addColumn<QString>("next");
    QTest::newRow("from hosts to a torus") << "hardware={chip: h100, hosts: 1, per_host: 8}"
                                           << "v5e-8"
                                           << "Topology";
    QTest::newRow("from a torus to hosts") << "hardware={chip: v5e, topology: [4, 2]}"
                                           << "h100x8"
                                           << "Hosts";
}

void TestStudyPanel::tabGoesFromAChipToWhatCountsIt()
{
    QFETCH(QString, before);
    QFETCH(QString, typed);
    QFETCH(QString, next);
    Bench bench(kNotebook, {before});
    auto* chip = bench.find<QComboBox>("Chip");
    retype(chip->lineEdit(), typed);
    QTest::keyClick(chip, Qt::Key_Tab);
    QCOMPARE(bench.edits.size(), 1);
    QVERIFY(bench.panel.focusWidget() != nullptr);
    QCOMPARE(bench.panel.focusWidget()->accessibleName(), next);
}

void TestStudyPanel::chipsAreFoundByAnyName()
{
    Bench bench(kNotebook);
    auto* chip = bench.find<QComboBox>("Chip");
    QVERIFY(chip != nullptr);
    QCOMPARE(chip->currentText(), "TPU v5e");

    retype(chip->lineEdit(), "trill");
    // tpu-v6, tpu-v6e, trillium, v6e and three machine types: all are "TPU v6e (Trillium)".
    QCOMPARE(chip->completer()->completionCount(), 7);
    chip->completer()->popup()->hide();
    retype(chip->lineEdit(), "ironwood");
    QTest::keyClick(chip->lineEdit(), Qt::Key_Return);
    QCOMPARE(bench.edits, QStringList("hardware.chip=ironwood; hardware.topology=[2, 2, 1]")); // four chips of two devices
    QCOMPARE(chip->currentText(), "TPU7x (Ironwood)");
    QVERIFY2(bench.notes().contains("8 devices of 4 chips (2 each)"), qPrintable(bench.notes()));

    retype(chip->lineEdit(), "v55");
    chip->completer()->popup()->hide();
    QTest::keyClick(chip->lineEdit(), Qt::Key_Return);
    QCOMPARE(bench.edits.size(), 1);
    QVERIFY2(bench.notes().contains("v55"), qPrintable(bench.notes()));
    QTest::keyClicks(chip->lineEdit(), "x"); // what is typed now is not yet refused
    QVERIFY2(!bench.notes().contains("v55"), qPrintable(bench.notes()));
    retype(chip->lineEdit(), "zzzzzz");
    QTest::keyClick(chip->lineEdit(), Qt::Key_Return);
    QVERIFY2(bench.notes().contains("unknown chip: \"zzzzzz\". The list has all chips."), qPrintable(bench.notes()));
}

void TestStudyPanel::aChipIsTakenAsItIsFound_data()
{
    QTest::addColumn<QString>("typed");
    QTest::addColumn<QList<int>>("keys");
    QTest::addColumn<QString>("chip");

    QTest::newRow("a name and Return") << "v6e" << QList<int>{Qt::Key_Return} << "TPU v6e (Trillium)";
    QTest::newRow("a name and Tab") << "v6e" << QList<int>{Qt::Key_Tab} << "TPU v6e (Trillium)";
    QTest::newRow("a row and Return") << "tpu v4" << QList<int>{Qt::Key_Down, Qt::Key_Return} << "TPU v4";
    QTest::newRow("a row and Tab") << "tpu v4" << QList<int>{Qt::Key_Down, Qt::Key_Tab} << "TPU v4";
    QTest::newRow("the third row") << "b200" << QList<int>{Qt::Key_Down, Qt::Key_Down, Qt::Key_Down, Qt::Key_Return} << "B200";
    QTest::newRow("the same chip by another name") << "tpu-v5-lite" << QList<int>{Qt::Key_Down, Qt::Key_Return} << "TPU v5e";
}

/// With the list of names open: its rows are others than those of the list of chips.
void TestStudyPanel::aChipIsTakenAsItIsFound()
{
    QFETCH(QString, typed);
    QFETCH(QList<int>, keys);
    QFETCH(QString, chip);
    Bench bench(kNotebook);
    auto* box = bench.find<QComboBox>("Chip");
    retype(box->lineEdit(), typed);
    QTRY_VERIFY(box->completer()->popup()->isVisible());
    for (const int key : keys) {
        QWidget* popup = box->completer()->popup();
        QTest::keyClick(popup->isVisible() ? popup : static_cast<QWidget*>(box->lineEdit()), static_cast<Qt::Key>(key));
    }
    QTRY_VERIFY2(box->currentText().contains(chip), qPrintable(box->currentText()));
    QCOMPARE(bench.edits.size(), chip == "TPU v5e" ? 0 : 1);
    QVERIFY(!box->completer()->popup()->isVisible());
}

void TestStudyPanel::machinesAreTypedWithTheirCounts_data()
{
    QTest::addColumn<QString>("typed");
    QTest::addColumn<QString>("says");

    QTest::newRow("a slice") << "v5e-64"
                             << "64 chips";
    QTest::newRow("GPUs") << "h100x64"
                          << "64 chips";
    QTest::newRow("nodes") << "8 nodes of 8 H100"
                           << "64 chips";
}

/// The names that --hw takes.
void TestStudyPanel::machinesAreTypedWithTheirCounts()
{
    QFETCH(QString, typed);
    QFETCH(QString, says);
    Bench bench(kNotebook);
    auto* chip = bench.find<QComboBox>("Chip");
    retype(chip->lineEdit(), typed);
    QTest::keyClick(chip->lineEdit(), Qt::Key_Return);
    QVERIFY2(bench.notes().contains(says), qPrintable(bench.notes()));
}

void TestStudyPanel::anotherKindOfChipBringsItsOwnCounts()
{
    Bench bench(kNotebook);
    auto* chip = bench.find<QComboBox>("Chip");
    const int h100 = chip->findText("H100 SXM 80GB");
    QVERIFY(h100 >= 0);
    chip->setCurrentIndex(h100);
    Q_EMIT chip->activated(h100);
    QCOMPARE(bench.edits,
        QStringList("hardware.chip=nvidia-h100-sxm-80gb; hardware.topology=; hardware.hosts=1; hardware.per_host=8"));
    QVERIFY(bench.find<QLineEdit>("Topology") == nullptr || !bench.find<QLineEdit>("Topology")->isVisible());
    auto* hosts = bench.find<QSpinBox>("Hosts");
    QVERIFY(hosts != nullptr && hosts->isVisible());
    QTest::keyClick(hosts, Qt::Key_Up);
    QCOMPARE(bench.edits.last(), "hardware.hosts=2");
    QVERIFY2(bench.notes().contains("4x2: 8 devices of 16 chips: 8 left idle"), qPrintable(bench.notes()));
}

void TestStudyPanel::aWrongTopologySaysWhy()
{
    Bench bench(kNotebook);
    auto* topology = bench.find<QLineEdit>("Topology");
    QCOMPARE(topology->text(), "4x2");
    retype(topology, "4x2x2");
    QVERIFY2(bench.notes().contains("the topology of TPU v5e has 2 axes"), qPrintable(bench.notes()));
    QTest::keyClick(topology, Qt::Key_Return);
    QCOMPARE(bench.edits, QStringList());
    retype(topology, "many");
    QVERIFY(bench.notes().contains("the number of chips along each axis"));
    retype(topology, "16 x 16");
    QTest::keyClick(topology, Qt::Key_Return);
    QCOMPARE(bench.edits, QStringList("hardware.topology=[16, 16]"));
    QCOMPARE(topology->text(), "16x16");
    QVERIFY(bench.notes().contains("Rings along x, y."));
}

void TestStudyPanel::aTorusHasSlices()
{
    Bench bench(kNotebook);
    auto* slices = bench.find<QSpinBox>("Slices");
    QVERIFY(slices != nullptr && slices->isVisible());
    QCOMPARE(slices->text(), "1 slice");
    QTest::keyClick(slices, Qt::Key_Up);
    QCOMPARE(bench.edits, QStringList("hardware.slices=2"));
    QCOMPARE(slices->text(), "2 slices");
    QVERIFY2(bench.notes().contains("4x2: 8 devices of 16 chips: 8 left idle"), qPrintable(bench.notes()));
    QTest::keyClick(slices, Qt::Key_Down);
    QCOMPARE(bench.edits.last(), "hardware.slices=");
}

void TestStudyPanel::layersAreEditedAsText()
{
    Bench bench(kNotebook);
    auto* layers = bench.find<QLineEdit>("Layers");
    QCOMPARE(layers->text(), "784, 8192, 8192, 8192, 10");
    retype(layers, "784, many, 10");
    QVERIFY(bench.notes().contains("Sizes are whole numbers"));
    retype(layers, "784");
    QVERIFY(bench.notes().contains("At least the inputs and the outputs"));
    QTest::keyClick(layers, Qt::Key_Return);
    QCOMPARE(bench.edits, QStringList());
    retype(layers, "[784 4096,10]");
    QTest::keyClick(layers, Qt::Key_Return);
    QCOMPARE(bench.edits, QStringList("model.mlp.layers=[784, 4096, 10]"));
    QCOMPARE(layers->text(), "784, 4096, 10");

    auto* batch = bench.find<QLineEdit>("Batch");
    retype(batch, "-3");
    QVERIFY(bench.notes().contains("A whole number, at least 1"));
    retype(batch, "4096");
    QTest::keyClick(batch, Qt::Key_Tab);
    QCOMPARE(bench.edits.last(), "batch=4096");
}

void TestStudyPanel::choicesOfTheModel()
{
    Bench bench(kNotebook);
    const auto choose = [&](const char* name, const char* word) {
        auto* box = bench.find<QComboBox>(name);
        QVERIFY(box != nullptr);
        box->setFocus();
        box->setCurrentText(word);
        Q_EMIT box->textActivated(word);
    };
    choose("Activation", "tanh");
    QCOMPARE(bench.edits.last(), "model.mlp.activation=tanh");
    choose("Loss", "mse");
    QCOMPARE(bench.edits.last(), "model.mlp.loss=mse");
    choose("Type of products", "f16");
    QCOMPARE(bench.edits.last(), "dtype={parameters: f32, matmul: f16}");
    choose("Optimizer", "adam");
    QCOMPARE(bench.edits.last(), "optimizer={adam: {learning_rate: 0.001}}");
    QVERIFY(bench.find<QLineEdit>("Momentum") == nullptr);
    retype(bench.find<QLineEdit>("Learning rate"), "0.5");
    QTest::keyClick(bench.find<QLineEdit>("Learning rate"), Qt::Key_Return);
    QCOMPARE(bench.edits.last(), "optimizer={adam: {learning_rate: 0.5}}");
    QTest::mouseClick(bench.find<QCheckBox>("Bias of each layer"), Qt::LeftButton, {},
        {8, bench.find<QCheckBox>("Bias of each layer")->height() / 2});
    QCOMPARE(bench.edits.last(), "model.mlp.bias=false");
    bench.document.undoStack().undo(); // a bias has a spec
    QVERIFY(bench.find<QCheckBox>("Bias of each layer")->isChecked());
    choose("Optimizer", "sgd");
    retype(bench.find<QLineEdit>("Momentum"), "0.9");
    QTest::keyClick(bench.find<QLineEdit>("Momentum"), Qt::Key_Return);
    QCOMPARE(bench.edits.last(), "optimizer={sgd: {learning_rate: 0.01, momentum: 0.9}}");
    choose("Optimizer", "none");
    QCOMPARE(bench.edits.last(), "optimizer=none");
    QVERIFY(!bench.find<QLineEdit>("Learning rate") || !bench.find<QLineEdit>("Learning rate")->isVisible());
    QVERIFY2(bench.notes().contains("Nothing is wrong."), qPrintable(bench.notes()));

    auto* name = bench.find<QLineEdit>("Name of the study");
    retype(name, "a: b");
    QTest::keyClick(name, Qt::Key_Return);
    QCOMPARE(bench.edits.last(), "name=\"a: b\"");
    QCOMPARE(name->text(), "a: b");
}

void TestStudyPanel::choicesOfATransformer()
{
    Bench bench("transformer_64.yaml");
    auto* sequence = bench.find<QLineEdit>("Sequence");
    QVERIFY(sequence != nullptr);
    QVERIFY(!bench.find<QLineEdit>("Layers")->isVisible());
    retype(sequence, "2k");
    QTest::keyClick(sequence, Qt::Key_Return);
    QCOMPARE(bench.edits.last(), "sequence=2048");
    auto* batch = bench.find<QLineEdit>("Batch");
    retype(batch, "1k");
    QTest::keyClick(batch, Qt::Key_Return);
    QCOMPARE(bench.edits.last(), "batch=1024");
    QVERIFY2(bench.notes().contains("2,097,152 tokens a step"), qPrintable(bench.notes()));
    auto* recompute = bench.find<QComboBox>("Recompute");
    Q_EMIT recompute->textActivated("full");
    QCOMPARE(bench.edits.last(), "recompute=full");
    QCOMPARE(recompute->currentText(), "full");
    const Bench network(kNotebook);
    QVERIFY(!network.find<QComboBox>("Recompute")->isVisible());
}

void TestStudyPanel::modelsThatCannotBeRead_data()
{
    QTest::addColumn<QString>("setting");
    QTest::addColumn<QString>("said");
    QTest::newRow("a configuration that is missing") << "model={transformer: {config: none.json}}"
                                                     << "The transformer cannot be read: ";
    QTest::newRow("a transformer without sizes") << "model={transformer: {layers: 2}}"
                                                 << "The transformer cannot be read: ";
}

/// What is wrong is said, and no form of a network that the study does not have is shown.
void TestStudyPanel::modelsThatCannotBeRead()
{
    QFETCH(const QString, setting);
    QFETCH(const QString, said);
    const Bench bench(kNotebook, {setting});
    QVERIFY(!bench.find<QLineEdit>("Layers")->isVisible());
    QVERIFY2(bench.notes().contains(said), qPrintable(bench.notes()));
}

void TestStudyPanel::microbatchesNeedNoStages_data()
{
    QTest::addColumn<QString>("pipeline");
    QTest::newRow("no axis") << "pipeline={microbatches: 2}";
    QTest::newRow("one stage on an axis") << "pipeline={axis: data, stages: 1, microbatches: 2}";
}

/// Microbatches without stages add up their gradients: no axis is a pipeline's, and choosing none keeps them.
void TestStudyPanel::microbatchesNeedNoStages()
{
    QFETCH(QString, pipeline);
    Bench bench("fsdp.yaml", {pipeline});
    auto* axis = bench.find<QComboBox>("Stages over");
    QCOMPARE(axis->currentText(), "no pipeline");
    QCOMPARE(bench.find<QLineEdit>("Microbatches")->text(), "2");
    QVERIFY(bench.find<QComboBox>("Schedule") == nullptr || !bench.find<QComboBox>("Schedule")->isVisible());
    const auto edits = bench.edits.size();
    Q_EMIT axis->activated(0);
    QCOMPARE(bench.edits.size(), edits);
}

/// Fields are filled once for each state, not for each time that somebody hands it over; the columns are laid out once for all groups.
void TestStudyPanel::whatIsShownIsNotShownAgain()
{
    Bench bench("fsdp.yaml");
    const auto* model = qobject_cast<SpecModel*>(bench.panel.findChild<SpecTree*>()->model());
    const auto analysis = Bench::session().analyse(bench.document.source());
    bench.panel.setAnalysis(analysis);
    QSignalSpy changed(model, &SpecModel::factsChanged);
    bench.panel.setSource(bench.document.source());
    bench.panel.setAnalysis(analysis);
    QCOMPARE(changed.count(), 0);
    bench.panel.setAnalysis(Bench::session().analyse({bench.document.source().text, {}, {"batch=64"}}));
    QCOMPARE(changed.count(), 1);
}

/// The column of names is as wide as short names need.
void TestStudyPanel::shortNamesAreWhole()
{
    Bench bench("fsdp.yaml");
    auto* tree = bench.panel.findChild<SpecTree*>();
    tree->collapseAll();
    for (int row = 0; row < tree->model()->rowCount(); ++row) {
        const QModelIndex group = tree->model()->index(row, 0);
        const QModelIndex first = tree->model()->index(0, 0, group);
        if (first.data().toString() != QLatin1String("x"))
            continue;
        tree->expand(group);
        QCoreApplication::processEvents();
        for (int i = 0; i < tree->model()->rowCount(group); ++i) {
            const QModelIndex name = tree->model()->index(i, 0, group);
            QVERIFY(tree->visualRect(name).width() >= tree->sizeHintForIndex(name).width());
        }
        return;
    }
    QFAIL("the inputs are a group");
}

/// Four microbatches for each stage, where they divide the batch.
void TestStudyPanel::aPipelineIsChosenAndLeft()
{
    Bench bench("pipeline_1f1b.yaml");
    auto* axis = bench.find<QComboBox>("Stages over");
    QVERIFY(axis != nullptr);
    QCOMPARE(axis->currentText(), "pipe");
    QCOMPARE(bench.find<QLineEdit>("Microbatches")->text(), "8");
    auto* schedule = bench.find<QComboBox>("Schedule");
    Q_EMIT schedule->textActivated("gpipe");
    QCOMPARE(bench.edits.last(), "pipeline.schedule=gpipe");
    axis->setCurrentIndex(0);
    Q_EMIT axis->activated(0);
    QCOMPARE(bench.edits.last(), "pipeline=");
    QVERIFY(!bench.find<QLineEdit>("Microbatches")->isVisible());
    axis->setCurrentIndex(axis->findText("pipe"));
    Q_EMIT axis->activated(axis->currentIndex());
    QCOMPARE(bench.edits.last(), "pipeline.axis=pipe; pipeline.stages=2; pipeline.microbatches=8");
    QCOMPARE(bench.find<QLineEdit>("Microbatches")->text(), "8");
}

void TestStudyPanel::problemsStandAtTheirFields()
{
    Bench bench("digits.yaml", {"model.mlp.layers=[60, 256, 256, 10]", "optimizer.adam.learning_rate=-1"});
    const auto noteBelow = [&](const char* name) {
        const QLineEdit* line = bench.find<QLineEdit>(name);
        const QWidget* field = line->parentWidget();
        while (field->findChild<ToneLabel*>() == nullptr)
            field = field->parentWidget();
        return field->findChild<ToneLabel*>()->text();
    };
    QCOMPARE(noteBelow("Layers"), "the digits have 64 inputs, the first layer takes 60");
    QCOMPARE(noteBelow("Learning rate"), "optimizer.adam.learning_rate is out of range, got -1");
    QCOMPARE(noteBelow("Batch"), QString());
}

void TestStudyPanel::programFilesHideTheModel()
{
    const std::string text = "meshwright: 1\nhardware: {chip: v5e, topology: [4, 2]}\nmesh: {data: 4, model: 2}\n"
                             "model: {program: mlp.mlir}\nsharding: {x: \"P('data')\"}\n";
    Bench bench(sim::StudySource{text, Bench::pathOf("s.yaml").string(), {}}, {});
    QVERIFY2(bench.notes().contains("The program mlp.mlir"), qPrintable(bench.notes()));
    for (const char* name : {"Layers", "Batch"})
        QVERIFY(!bench.find<QLineEdit>(name)->isVisible());
    QVERIFY(!bench.find<QComboBox>("Optimizer")->isVisible());
    QCOMPARE(bench.model().index(0, 0).data().toString(), "Arrays");
    QVERIFY2(bench.model().indexOf("x").isValid(), qPrintable(bench.notes()));
    // As JAX names the leaves of a tree.
    QVERIFY(bench.model().indexOf("x", SpecModel::Spec).flags().testFlag(Qt::ItemIsEditable));
    QVERIFY(bench.model().indexOf("params['w1']", SpecModel::Spec).flags().testFlag(Qt::ItemIsEditable));
    bench.selection.setArray("params['w1']"); // the text of the program has its spec
    QTRY_VERIFY2(bench.notes().contains("The program sets it: sdy.sharding of %arg0."), qPrintable(bench.notes()));
}

void TestStudyPanel::aBadSpecIsUnderlinedAtItsToken_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("token");
    QTest::addColumn<QString>("message");

    QTest::newRow("unknown") << "P('data', 'modle')"
                             << "modle"
                             << "unknown axis name: \"modle\"";
    QTest::newRow("twice") << "P('model', 'model')"
                           << "model')"
                           << "axis \"model\" is used twice";
    QTest::newRow("too long") << "P('data', None, None)"
                              << "None)"
                              << "has rank 2 (inputs of layer 1, outputs of layer 1)";
    QTest::newRow("no spec") << "P('data' 'model')"
                             << "'model"
                             << "is not a PartitionSpec";
}

/// Red pixels at the token, none elsewhere in the line, and the words below.
void TestStudyPanel::aBadSpecIsUnderlinedAtItsToken()
{
    QFETCH(QString, text);
    QFETCH(QString, token);
    QFETCH(QString, message);

    Bench bench(kNotebook);
    SpecEdit* line = bench.editSpec("layers.1.w");
    QVERIFY(line != nullptr);
    QCOMPARE(line->text(), "P(None, 'model')");
    retype(line, text);
    const auto* plate = bench.panel.findChild<QFrame*>("specMessage");
    QVERIFY(plate->isVisible());
    QVERIFY2(bench.notes().contains(message), qPrintable(bench.notes()));
    const int lineBottom = line->mapTo(&bench.panel, QPoint(0, line->height())).y();
    const int plateTop = plate->mapTo(&bench.panel, QPoint(0, 0)).y();
    QVERIFY2(plateTop >= lineBottom && plateTop - lineBottom < 10, "the message is right below");

    const int at = static_cast<int>(text.lastIndexOf(token));
    const int length = static_cast<int>(line->problems().front().range.length);
    const int left = leftOf(*line, at);
    const int right = leftOf(*line, at + length);
    line->setCursorPosition(0);
    const QImage image = line->grab().toImage();
    const auto scale = image.devicePixelRatio();
    int inside = 0;
    int outside = 0;
    for (int x = 0; x < image.width(); ++x) {
        for (int y = 0; y < image.height(); ++y) {
            if (!isReddish(image.pixel(x, y)))
                continue;
            const bool isInside = x >= (left - 3) * scale && x <= (right + 3) * scale;
            (isInside ? inside : outside) += 1;
        }
    }
    QVERIFY2(inside > 2, qPrintable(QString::number(inside)));
    QCOMPARE(outside, 0);

    retype(line, "P(None, 'data')");
    QVERIFY(!plate->isVisible());
    QVERIFY(line->problems().empty());
}

void TestStudyPanel::theNearestSpecIsOnAButton()
{
    Bench bench(kNotebook);
    SpecEdit* line = bench.editSpec("layers.1.w");
    retype(line, "P('dta', 'modle')");
    QPushButton* use = bench.button("Use P('data', 'model')");
    QVERIFY(use != nullptr);
    QTest::mouseClick(use, Qt::LeftButton);
    QCOMPARE(line->text(), "P('data', 'model')");
    QCOMPARE(QApplication::focusWidget(), line); // the keyboard stays
    finishSpec(bench);
    QCOMPARE(bench.edits, QStringList("sharding.layers.1.w=P('data', 'model')"));
}

void TestStudyPanel::axisNamesAreCompleted()
{
    Bench bench(kNotebook);
    SpecEdit* line = bench.editSpec("layers.1.w");
    retype(line, "P(None, 'mo");
    QVERIFY(line->isCompleting());
    auto* list = line->findChild<QCompleter*>()->popup();
    QCOMPARE(list->model()->rowCount(), 1);
    QCOMPARE(list->model()->index(0, 0).data().toString(), "model");
    QTest::keyClick(list, Qt::Key_Return);
    QCOMPARE(line->text(), "P(None, 'model");
    QVERIFY(!line->isCompleting());
    QTest::keyClicks(line, "')");
    QTest::keyClick(line, Qt::Key_Escape);
    QCOMPARE(bench.edits, QStringList());
}

void TestStudyPanel::specsAreCommittedRightOrWrong()
{
    Bench bench(kNotebook);
    retype(bench.editSpec("layers.1.w"), "P('data', None)");
    finishSpec(bench);
    QCOMPARE(bench.edits, QStringList("sharding.layers.1.w=P('data', None)"));
    QCOMPARE(bench.model().indexOf("layers.1.w", SpecModel::Spec).data().toString(), "P('data', None)");

    // A wrong one is in the document too, where its problem can be read and fixed.
    retype(bench.editSpec("layers.1.w"), "P('data', 'data'");
    finishSpec(bench);
    QCOMPARE(bench.edits.last(), "sharding.layers.1.w=P('data', 'data'");
    QCOMPARE(bench.model().indexOf("layers.1.w", SpecModel::Spec).data().toString(), "P('data', 'data'");
    QVERIFY2(bench.notes().contains("is not a PartitionSpec"), qPrintable(bench.notes()));
    // The rest can be edited meanwhile.
    QTest::keyClick(bench.find<LegalSpinBox>("Size of axis data"), Qt::Key_Down);
    QCOMPARE(bench.find<LegalSpinBox>("Size of axis data")->value(), 2);
    QCOMPARE(bench.model().indexOf("layers.1.w", SpecModel::Spec).data().toString(), "P('data', 'data'");

    // An output of a layer has its own place in the file.
    Bench outputs("digits.yaml", {"sharding.layers.1.out=P('data', 'model')"});
    retype(outputs.editSpec("act.layers.1"), "P('data', None)");
    finishSpec(outputs);
    QCOMPARE(outputs.edits, QStringList("sharding.layers.1.out=P('data', None)"));
}

void TestStudyPanel::specsAreRemoved()
{
    Bench bench(kNotebook);
    retype(bench.editSpec("layers.1.w"), " ");
    finishSpec(bench);
    QCOMPARE(bench.edits, QStringList("sharding.layers.1.w="));
    QVERIFY(!bench.model().arrayAt(bench.model().indexOf("layers.1.w"))->isOwn);

    bench.selection.setArray("layers.2.w");
    bench.tree().setFocus();
    QTest::keyClick(&bench.tree(), Qt::Key_Delete);
    QCOMPARE(bench.edits.last(), "sharding.layers.2.w=");
    // What follows from others cannot be removed.
    QTest::keyClick(&bench.tree(), Qt::Key_Delete);
    QCOMPARE(bench.edits.size(), 2);
}

void TestStudyPanel::aSpecSaysWhatItMeans()
{
    Bench bench(kNotebook);
    bench.selection.setArray("layers.1.w");
    QVERIFY2(
        bench.notes().contains("f32[8192,8192]: every device holds a piece of 8192x4096, 128 MiB. Each piece is on 4 devices."),
        qPrintable(bench.notes()));
    QVERIFY(bench.notes().contains("Set in the study: sharding.layers.1.w."));
    QCOMPARE(bench.model().indexOf("layers.1.w", SpecModel::PerDevice).data().toString(), "128 MiB");
    bench.selection.setArray("layers.0.w");
    QVERIFY2(bench.notes().contains("f32[784,8192]: every device holds all of it, 24.5 MiB."), qPrintable(bench.notes()));
    bench.selection.setArray("act.layers.1");
    QVERIFY2(bench.notes().contains("It follows from other arrays."), qPrintable(bench.notes()));

    Bench ruled("data_parallel.yaml");
    ruled.selection.setArray("layers.0.w");
    QVERIFY2(ruled.notes().contains("It has no spec of its own; the rule for \"*\" sets it."), qPrintable(ruled.notes()));
}

void TestStudyPanel::specsThatFollowAreGrey()
{
    Bench bench(kNotebook);
    bench.tree().clearSelection();
    bench.tree().setCurrentIndex({});
    const auto darkest = [&](const char* array) {
        const QRect cell = bench.tree().visualRect(bench.model().indexOf(array, SpecModel::Spec));
        const QImage image = bench.tree().viewport()->grab(cell).toImage();
        int least = 255;
        for (int x = 0; x < image.width(); ++x) {
            for (int y = 0; y < image.height(); ++y)
                least = std::min(least, qGray(image.pixel(x, y)));
        }
        return least;
    };
    QVERIFY2(darkest("layers.1.w") + 30 < darkest("layers.0.w"),
        qPrintable(QString("%1 %2").arg(darkest("layers.1.w")).arg(darkest("layers.0.w"))));
    const QString why = bench.model().indexOf("act.layers.1", SpecModel::Spec).data(Qt::ToolTipRole).toString();
    QVERIFY2(why.contains("It follows from other arrays.") && why.contains("sharding."), qPrintable(why));
}

void TestStudyPanel::arraysAreSelectedBothWays()
{
    Bench bench(kNotebook);
    const QRect row = bench.tree().visualRect(bench.model().indexOf("layers.2.b"));
    QTest::mouseClick(bench.tree().viewport(), Qt::LeftButton, {}, row.center());
    QCOMPARE(bench.selection.array(), "layers.2.b");
    QTest::keyClick(&bench.tree(), Qt::Key_Up);
    QCOMPARE(bench.selection.array(), "layers.2.w");
    bench.selection.setArray("grad.layers.0.w"); // its group is closed at first
    QCOMPARE(bench.tree().currentIndex().siblingAtColumn(SpecModel::Name), bench.model().indexOf("grad.layers.0.w"));
    QVERIFY(bench.tree().isExpanded(bench.tree().currentIndex().parent()));
    bench.selection.setArray("no such array");
    QCOMPARE(bench.tree().currentIndex().siblingAtColumn(SpecModel::Name), bench.model().indexOf("grad.layers.0.w"));
    // A new analysis keeps the row.
    QTest::keyClick(bench.find<LegalSpinBox>("Size of axis data"), Qt::Key_Down);
    QCOMPARE(bench.tree().currentIndex().siblingAtColumn(SpecModel::Name), bench.model().indexOf("grad.layers.0.w"));
}

void TestStudyPanel::arraysAreAModel()
{
    SpecModel model;
    const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    QSignalSpy resets(&model, &QAbstractItemModel::modelReset);
    for (const char* setting : {"batch=8192", "mesh.data=2", "model.mlp.layers=[784, 10]", "optimizer=adam",
             "sharding.x=P('dta')", "mesh=[", "model.mlp=3"}) {
        const auto path = Bench::pathOf(kNotebook);
        const sim::StudySource source{valueOf(readFile(path)), path.string(), {setting}};
        const auto analysis = Bench::session().analyse(source);
        model.setFacts(std::make_shared<const StudyFacts>(
            factsOf(source, analysis, analysis->built ? analysis : nullptr, Bench::session().catalogue())));
    }
    QCOMPARE(resets.count(), 5); // not where the arrays are the same: another mesh, a setting that is refused
    QCOMPARE(model.rowCount(), 0);
}

void TestStudyPanel::fixesAreAppliedOnAClick()
{
    Bench bench(kNotebook, {"batch=8190", "train.steps=-3"});
    QVERIFY(bench.find<QWidget>("error MW1401: steps must be at least 0, got -3") != nullptr);
    auto* fix = bench.find<QPushButton>("Apply the fix of MW1401: train.steps=0");
    QVERIFY(fix != nullptr);
    QTest::mouseClick(fix, Qt::LeftButton);
    QCOMPARE(bench.edits, QStringList("train.steps=0"));
    auto* batch = bench.find<QPushButton>("Apply the fix of MW1104: batch=8188");
    QVERIFY2(batch != nullptr, qPrintable(bench.notes()));
    batch->setFocus();
    QTest::keyClick(batch, Qt::Key_Space);
    QCOMPARE(bench.edits.last(), "batch=8188");
    QVERIFY2(bench.notes().contains("Nothing is wrong."), qPrintable(bench.notes()));

    // Each of several steps in one edit.
    Bench names(kNotebook, {"sharding.layer.0.w=P('data', None)"});
    QTest::mouseClick(
        names.find<QPushButton>("Apply the fix of MW1429: sharding.layer.0.w=, sharding.layers.0.w=P('data', None)"),
        Qt::LeftButton);
    QCOMPARE(names.edits, QStringList("sharding.layer.0.w=; sharding.layers.0.w=P('data', None)"));
    QVERIFY(names.notes().contains("Nothing is wrong."));

    // What the engine finds has fixes too.
    Bench hardware(kNotebook, {"hardware.chip=v4"});
    QTest::mouseClick(hardware.find<QPushButton>("Apply the fix of MW1703: hardware.topology=[2, 2, 2]"), Qt::LeftButton);
    QVERIFY2(hardware.notes().contains("Nothing is wrong."), qPrintable(hardware.notes()));
}

void TestStudyPanel::problemsLeadToTheirFields_data()
{
    QTest::addColumn<QString>("setting");
    QTest::addColumn<QString>("field");

    QTest::newRow("batch") << "batch=0"
                           << "Batch";
    QTest::newRow("layers") << "model.mlp.layers=[784, 8192, 0, 8192, 10]"
                            << "Layers";
    QTest::newRow("loss") << "model.mlp.loss=hinge"
                          << "Loss";
    QTest::newRow("rate") << "optimizer={sgd: {learning_rate: -1}}"
                          << "Learning rate";
    QTest::newRow("axis") << "mesh.model=0"
                          << "Size of axis model";
    QTest::newRow("chip") << "hardware.chip=abacus"
                          << "Chip";
    QTest::newRow("topology") << "hardware.topology=[4, 4, 4]"
                              << "Topology";
    QTest::newRow("a spec") << "sharding.layers.2.w=P('expert')"
                            << "Spec of layers.2.w";
    QTest::newRow("a spec that is none") << "sharding.x=data"
                                         << "Spec of x";
}

void TestStudyPanel::problemsLeadToTheirFields()
{
    QFETCH(QString, setting);
    QFETCH(QString, field);

    Bench bench(kNotebook, {setting});
    QWidget* row = nullptr;
    for (QWidget* widget : bench.panel.findChildren<QWidget*>()) {
        if (row == nullptr && widget->isVisible() && widget->accessibleName().startsWith("error MW"))
            row = widget;
    }
    QVERIFY2(row != nullptr, qPrintable(bench.notes()));
    const bool byKey = QTest::currentDataTag() == QLatin1String("batch");
    row->setFocus();
    if (byKey)
        QTest::keyClick(row, Qt::Key_Return);
    else
        QTest::mouseClick(row, Qt::LeftButton, {}, QPoint(row->width() / 2, 10));
    QVERIFY(QApplication::focusWidget() != nullptr);
    QCOMPARE(QApplication::focusWidget()->accessibleName(), field);
}

void TestStudyPanel::unreadableTextsCannotBeEdited()
{
    Bench bench(sim::StudySource{"mesh: [1", "s.yaml", {}}, {});
    QVERIFY(!bench.find<QLineEdit>("Batch")->isEnabled());
    QVERIFY(!bench.button("Add axis")->isEnabled());
    QVERIFY(bench.find<QWidget>("error MW1402: this is not YAML: end of sequence flow not found") != nullptr);
}

/// Answers to earlier edits arrive while the next one is being typed.
void TestStudyPanel::typingIsNotDisturbed()
{
    Bench bench(kNotebook);
    const auto answer = [&](const QString& setting) {
        sim::StudySource source = bench.document.source();
        source.settings.push_back(setting.toStdString());
        bench.panel.setSource(source);
        bench.panel.setAnalysis(Bench::session().analyse(source));
    };
    auto* batch = bench.find<QLineEdit>("Batch");
    retype(batch, "40");
    batch->setCursorPosition(1);
    answer("batch=1024");
    QCOMPARE(batch->text(), "40");
    QCOMPARE(batch->cursorPosition(), 1);
    QTest::keyClick(batch, Qt::Key_Escape);
    QCOMPARE(batch->text(), "1024"); // what the document has now

    auto* data = bench.find<LegalSpinBox>("Size of axis data")->findChild<QLineEdit*>();
    retype(data, "1");
    answer("mesh.data=2");
    QCOMPARE(data->text(), "1");
    QTest::keyClick(data, Qt::Key_Escape);

    SpecEdit* spec = bench.editSpec("layers.1.w");
    retype(spec, "P('da");
    spec->setCursorPosition(3);
    answer("sharding.layers.1.w=P()");
    QCOMPARE(bench.tree().findChild<SpecEdit*>(), spec);
    QCOMPARE(spec->text(), "P('da");
    QCOMPARE(spec->cursorPosition(), 3);

    // An analysis of an earlier state changes no field.
    bench.panel.setFocus();
    bench.panel.setSource(bench.document.source());
    QCOMPARE(batch->text(), "8192");
    sim::StudySource old = bench.document.source();
    old.settings.push_back("batch=16");
    bench.panel.setAnalysis(Bench::session().analyse(old));
    QCOMPARE(batch->text(), "8192");
}

void TestStudyPanel::theWheelScrollsThePanel()
{
    Bench bench(kNotebook);
    bench.panel.resize(340, 400);
    QTest::qWait(10);
    auto* loss = bench.find<QComboBox>("Loss");
    bench.find<QLineEdit>("Batch")->setFocus();
    const auto wheel = [](QWidget* widget) {
        const QPointF at = widget->rect().center();
        QWheelEvent event(at, widget->mapToGlobal(at), {}, {0, -120}, Qt::NoButton, {}, Qt::NoScrollPhase, false);
        QCoreApplication::sendEvent(widget, &event);
        return event.isAccepted();
    };
    const QString before = loss->currentText();
    QVERIFY(!wheel(loss));
    QVERIFY(!wheel(bench.find<QSlider>("Mesh")));
    QVERIFY(!wheel(bench.find<LegalSpinBox>("Size of axis data")));
    QCOMPARE(loss->currentText(), before);
    QCOMPARE(bench.edits, QStringList());
}

/// Tab goes from the top to the bottom, once through everything.
void TestStudyPanel::keyboardOrder_data()
{
    QTest::addColumn<QStringList>("settings");
    QTest::addColumn<QStringList>("hardware");

    QTest::newRow("a torus") << QStringList() << QStringList{"Topology", "Slices"};
    QTest::newRow("GPUs") << QStringList{"hardware={chip: h100, hosts: 1, per_host: 8}"}
                          << QStringList{"Hosts", "Chips of a host"};
}

void TestStudyPanel::keyboardOrder()
{
    QFETCH(QStringList, settings);
    QFETCH(QStringList, hardware);
    Bench bench(kNotebook, settings + QStringList("train.steps=-3"));
    bench.panel.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&bench.panel));
    bench.find<QLineEdit>("Name of the study")->setFocus();
    QStringList order;
    for (int i = 0; i < 40; ++i) {
        QWidget* focused = QApplication::focusWidget();
        const QString name
            = focused->accessibleName().isEmpty() ? static_cast<QPushButton*>(focused)->text() : focused->accessibleName();
        if (!order.isEmpty() && name == order.first())
            break;
        order << name;
        QTest::keyClick(focused, Qt::Key_Tab);
    }
    const QStringList expected = {"Name of the study", "Name of axis data", "Size of axis data", "Remove axis data",
        "Name of axis model", "Size of axis model", "Remove axis model", "Add axis", "Mesh", "Chip", hardware[0], hardware[1],
        "Layers", "Activation", "Bias of each layer", "Loss", "Batch", "Type of parameters", "Type of products", "Optimizer",
        "Learning rate", "Momentum", "Stages over", "Arrays and their specs", "error MW1401: steps must be at least 0, got -3",
        "Apply the fix of MW1401: train.steps=0"};
    QCOMPARE(order, expected);
}

void TestStudyPanel::everythingHasAName()
{
    Bench bench(kNotebook, {"mesh.data=16", "batch=8190", "train.steps=-3"});
    QStringList nameless;
    for (const QWidget* widget : bench.panel.findChildren<QWidget*>()) {
        const bool inside = qobject_cast<const QAbstractSpinBox*>(widget->parentWidget()) != nullptr
            || qobject_cast<const QComboBox*>(widget->parentWidget()) != nullptr;
        const bool reachable = widget->isVisible() && (widget->focusPolicy() & Qt::TabFocus) != 0 && !inside;
        const auto* button = qobject_cast<const QAbstractButton*>(widget);
        if (reachable && widget->accessibleName().isEmpty() && (button == nullptr || button->text().isEmpty()))
            nameless << widget->metaObject()->className();
    }
    QCOMPARE(nameless, QStringList());
}

void TestStudyPanel::followsTheTheme()
{
    Bench bench(kNotebook, {"mesh.data=16"});
    const auto tone = [&] {
        for (const ToneLabel* label : bench.panel.findChildren<ToneLabel*>()) {
            if (label->text().startsWith("16x2"))
                return label->palette().color(QPalette::WindowText).rgb();
        }
        return QRgb{};
    };
    QCOMPARE(tone(), qtColour(ColourRole::Error, Theme::Light).rgb());
    applyTheme(*qApp, ThemeChoice::Dark);
    QTRY_COMPARE(tone(), qtColour(ColourRole::Error, Theme::Dark).rgb());
    applyTheme(*qApp, ThemeChoice::Light);
    QTRY_COMPARE(tone(), qtColour(ColourRole::Error, Theme::Light).rgb());
}

void TestStudyPanel::nothingIsCutAtTheLeastWidth_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<QStringList>("settings");
    const QDir folder(QString::fromStdString(Bench::pathOf({}).string()));
    for (const QString& name : folder.entryList({"*.yaml"}, QDir::Files))
        QTest::newRow(qPrintable(name)) << name << QStringList();
    QTest::newRow("a mesh that is not legal") << "llama3_405b_h100.yaml" << QStringList{"mesh.data=16", "mesh.tensor=64"};
}

/// The panel scrolls downwards only.
void TestStudyPanel::nothingIsCutAtTheLeastWidth()
{
    QFETCH(QString, example);
    QFETCH(QStringList, settings);
    Bench bench(example, settings);
    bench.panel.resize(bench.panel.minimumWidth(), 1300);
    const auto* scroll = bench.panel.findChild<QScrollArea*>();
    QString widest;
    for (const QWidget* section : scroll->widget()->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly))
        widest += QStringLiteral("%1 %2; ").arg(section->metaObject()->className()).arg(section->minimumSizeHint().width());
    QVERIFY2(scroll->widget()->minimumSizeHint().width() <= scroll->viewport()->width(), qPrintable(widest));
}

MESHWRIGHT_TEST(TestStudyPanel)

} // namespace tst_study_panel

#include "tst_study_panel.moc"
