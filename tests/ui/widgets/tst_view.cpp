// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/test_class.h"
#include "ui/widgets/elided_label.h"
#include "ui/widgets/view.h"

#include <QBoxLayout>
#include <QListWidget>
#include <QPushButton>

namespace tst_view {

using namespace meshwright;

/// A hidden view costs nothing, and shows the latest analysis once it is seen.
class TestView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aHiddenViewWaits();
    void aSeenViewShowsAtOnce();
    void hiddenViewsCanBeAsked();
    void labelsEndInDots();
    void theFocusStaysInTheView_data();
    void theFocusStaysInTheView();
};

namespace {

class CountingView : public ui::View {
public:
    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override { given.push_back(std::move(analysis)); }
    DisplayList picture() const override { return {}; }
    QString command() const override { return {}; }

    std::vector<std::shared_ptr<const sim::Analysis>> given;
};

std::shared_ptr<const sim::Analysis> anAnalysis()
{
    return std::make_shared<sim::Analysis>();
}

} // namespace

void TestView::aHiddenViewWaits()
{
    CountingView view;
    const auto last = anAnalysis();
    for (int i = 0; i < 3; ++i)
        view.present(anAnalysis());
    view.present(last);
    QVERIFY(view.given.empty());
    view.show();
    QCOMPARE(view.given.size(), std::size_t{1});
    QCOMPARE(view.given.front(), last);
    view.hide();
    view.show();
    QCOMPARE(view.given.size(), std::size_t{1});
}

void TestView::aSeenViewShowsAtOnce()
{
    CountingView view;
    view.show();
    view.present(anAnalysis());
    QCOMPARE(view.given.size(), std::size_t{1});
}

void TestView::hiddenViewsCanBeAsked()
{
    CountingView view;
    view.bringUpToDate();
    QVERIFY(view.given.empty());
    view.present(anAnalysis());
    view.bringUpToDate();
    view.bringUpToDate();
    QCOMPARE(view.given.size(), std::size_t{1});
}

void TestView::labelsEndInDots()
{
    ui::ElidedLabel label;
    label.setWhole("all-reduce of grad.layers.2.w over data");
    label.resize(label.sizeHint());
    QCOMPARE(label.text(), label.whole());
    label.resize(label.width() / 2, label.height());
    label.show();
    QVERIFY2(label.text().endsWith("…"), qPrintable(label.text()));
    QCOMPARE(label.toolTip(), label.whole());
    QVERIFY(label.fontMetrics().horizontalAdvance(label.text()) <= label.width());
}

void TestView::theFocusStaysInTheView_data()
{
    QTest::addColumn<bool>("hasProxy");
    QTest::addColumn<bool>("hides");

    QTest::newRow("disabled") << false << false;
    QTest::newRow("hidden") << false << true;
    QTest::newRow("with a main widget") << true << false;
}

/// Of a button that its own work disables.
void TestView::theFocusStaysInTheView()
{
    QFETCH(const bool, hasProxy);
    QFETCH(const bool, hides);
    QWidget window;
    auto* row = new QHBoxLayout(&window);
    auto* view = new CountingView;
    row->addWidget(view);
    row->addWidget(new QPushButton("beside"));
    auto* inside = new QVBoxLayout(view);
    auto* list = new QListWidget;
    auto* more = new QPushButton("more");
    auto* work = new QPushButton("work");
    for (QWidget* one : {static_cast<QWidget*>(list), static_cast<QWidget*>(more), static_cast<QWidget*>(work)})
        inside->addWidget(one);
    if (hasProxy)
        view->setFocusProxy(more);
    window.show();
    QVERIFY(QTest::qWaitForWindowExposed(&window));
    work->setFocus();
    hides ? work->hide() : work->setEnabled(false);
    QCOMPARE(window.focusWidget(), hasProxy ? static_cast<QWidget*>(more) : static_cast<QWidget*>(list));
}

MESHWRIGHT_TEST(TestView)

} // namespace tst_view

#include "tst_view.moc"
