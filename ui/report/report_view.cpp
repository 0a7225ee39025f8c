// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/report/report_view.h"

#include "core/support/counted.h"
#include "ui/report/page_layout.h"
#include "ui/widgets/painter.h"

#include <QBoxLayout>
#include <QHelpEvent>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QToolTip>

namespace meshwright::ui {

/// Pages below each other, as wide as there is room for.
class PagesWidget : public QWidget {
public:
    using QWidget::QWidget;

    void setPages(std::vector<DisplayList> pages)
    {
        m_pages = std::move(pages);
        fitWidth(m_room);
        update();
    }

    const std::vector<DisplayList>& pages() const { return m_pages; }

    /// Scales the pages so that they fill this width, within limits that keep their text readable.
    void fitWidth(int room)
    {
        m_room = room;
        constexpr double kSmallest = 0.7;
        constexpr double kLargest = 1.4;
        m_scale = m_pages.empty() ? 1.0 : std::clamp((room - 2.0 * kMargin) / m_pages.front().width, kSmallest, kLargest);
        double height = kMargin;
        double width = 0.0;
        for (const DisplayList& page : m_pages) {
            height += page.height * m_scale + kMargin;
            width = std::max(width, page.width * m_scale + 2.0 * kMargin);
        }
        setMinimumSize(qCeil(width), qCeil(m_pages.empty() ? 0.0 : height));
        resize(std::max(room, qCeil(width)), qCeil(height));
    }

    /// Where a page lies in the widget.
    QRectF frame(std::size_t index) const
    {
        double y = kMargin;
        for (std::size_t i = 0; i < index; ++i)
            y += m_pages[i].height * m_scale + kMargin;
        const double width = m_pages[index].width * m_scale;
        return {std::max(kMargin, (this->width() - width) / 2.0), y, width, m_pages[index].height * m_scale};
    }

    /// The page with the most of it between two heights.
    std::size_t pageBetween(double top, double bottom) const
    {
        std::size_t best = 0;
        double most = -1.0;
        for (std::size_t i = 0; i < m_pages.size(); ++i) {
            const QRectF page = frame(i);
            const double seen = std::min(bottom, page.bottom()) - std::max(top, page.top());
            if (seen > most) {
                most = seen;
                best = i;
            }
        }
        return best;
    }

protected:
    void paintEvent(QPaintEvent* event) override
    {
        const Theme theme = themeOf(palette());
        QPainter painter(this);
        painter.fillRect(event->rect(), qtColour(ColourRole::Surface, theme));
        for (std::size_t i = 0; i < m_pages.size(); ++i) {
            const QRectF page = frame(i);
            if (!page.intersects(event->rect()))
                continue;
            painter.save();
            painter.setPen(QPen(qtColour(ColourRole::Grid, theme), 1.0));
            painter.drawRect(page.adjusted(-0.5, -0.5, 0.5, 0.5));
            painter.setClipRect(page);
            painter.translate(page.topLeft());
            painter.scale(m_scale, m_scale);
            paint(painter, m_pages[i], theme);
            painter.restore();
        }
    }

    bool event(QEvent* event) override
    {
        if (event->type() != QEvent::ToolTip)
            return QWidget::event(event);
        const auto* help = static_cast<QHelpEvent*>(event);
        for (std::size_t i = 0; i < m_pages.size(); ++i) {
            const QRectF page = frame(i);
            if (!page.contains(help->pos()))
                continue;
            const QPointF at = (help->pos() - page.topLeft()) / m_scale;
            const DisplayItem* item = m_pages[i].itemAt({at.x(), at.y()});
            if (item != nullptr && !item->tooltip.empty()) {
                QToolTip::showText(help->globalPos(), QString::fromStdString(item->tooltip), this);
                return true;
            }
        }
        QToolTip::hideText();
        return true;
    }

private:
    static constexpr double kMargin = 16.0;

    std::vector<DisplayList> m_pages;
    double m_scale = 1.0;
    int m_room = 0;
};

namespace {

/// Tells its pages how much room there is.
class PagesArea : public QScrollArea {
public:
    PagesArea(PagesWidget* pages, QWidget* parent)
        : QScrollArea(parent)
        , m_pages(pages)
    {
        setWidget(pages);
        setFrameShape(QFrame::NoFrame);
        setFocusPolicy(Qt::StrongFocus);
        setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOn); // or the room changes with what is in it
    }

protected:
    void resizeEvent(QResizeEvent* event) override
    {
        // What is at the top stays there.
        const double seen = m_pages->height() > 0 ? static_cast<double>(verticalScrollBar()->value()) / m_pages->height() : 0.0;
        QScrollArea::resizeEvent(event);
        m_pages->fitWidth(viewport()->width());
        verticalScrollBar()->setValue(qRound(seen * m_pages->height()));
    }

private:
    PagesWidget* m_pages;
};

} // namespace

ReportView::ReportView(Selection&, QWidget* parent)
    : View(parent)
    , m_summary(new QLabel(tr("No report yet."), this))
    , m_save(new QPushButton(tr("Save report…"), this))
    , m_skip(new QPushButton(tr("Without advice"), this))
    , m_own(new QPushButton(tr("Report of the study"), this))
    , m_pages(new PagesWidget)
{
    m_scroll = new PagesArea(m_pages, this);
    m_scroll->setAccessibleName(tr("Pages of the report"));
    m_summary->setTextFormat(Qt::PlainText);
    m_summary->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_save->setToolTip(tr("Writes the report as HTML, Markdown, CSV, JSON or PDF"));
    m_save->setEnabled(false);
    m_own->setToolTip(tr("Leaves the report that was opened, and shows that of the study as it stands"));
    m_skip->setToolTip(tr("Shows the report now, without simulating the changes that its advice is taken from"));
    m_skip->hide();
    connect(m_skip, &QPushButton::clicked, this, &ReportView::skipTrials);
    connect(&m_job, &ReportJob::progressed, this, [this](int trials) {
        if (!m_opened)
            m_summary->setText(tr("Putting the report together: %1 simulated to find advice…")
                                   .arg(QString::fromStdString(counted(trials, "change"))));
    });
    m_own->hide();
    connect(m_own, &QPushButton::clicked, this, &ReportView::leaveOpened);
    connect(m_save, &QPushButton::clicked, this, &ReportView::saveRequested);
    connect(&m_job, &ReportJob::finished, this, &ReportView::showReport);

    auto* head = new QHBoxLayout;
    head->setContentsMargins(8, 8, 8, 0);
    head->setSpacing(6);
    head->addWidget(m_summary, 1);
    head->addWidget(m_skip);
    head->addWidget(m_own);
    head->addWidget(m_save);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(6);
    layout->addLayout(head);
    layout->addWidget(m_scroll, 1);
    setFocusProxy(m_scroll);
}

void ReportView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    m_analysis = std::move(analysis);
    m_own->setEnabled(true);
    m_save->setEnabled(true);
    m_isStale = true;
    refresh();
}

void ReportView::forgetStudy()
{
    m_job.cancel();
    m_analysis.reset();
    m_training.reset();
    m_report.reset();
    m_isStale = true;
    m_skip->hide();
    m_pages->setPages({});
    m_summary->setText(tr("The study is being simulated…"));
    leaveOpened();
}

void ReportView::setTraining(const std::shared_ptr<const TrainingResult>& result)
{
    m_training = result ? std::optional(sim::measuredTraining(*result)) : std::nullopt;
    m_isStale = true;
    refresh();
}

void ReportView::refresh()
{
    if (m_opened || !m_isStale || !m_analysis || !isVisible())
        return;
    m_isStale = false;
    m_summary->setText(tr("Putting the report together…"));
    m_skip->show();
    m_job.request(m_analysis, m_training);
}

void ReportView::skipTrials()
{
    m_skip->hide();
    m_job.request(m_analysis, m_training, 0);
}

void ReportView::showOpened(std::shared_ptr<const sim::Report> report, const QString& name)
{
    m_opened = std::move(report);
    m_isStale = true; // that of the study
    m_pages->setPages(pagesOf(*m_opened));
    m_scroll->verticalScrollBar()->setValue(0);
    m_summary->setText(tr("%1 as it was written").arg(name));
    m_skip->hide();
    m_own->show();
    m_own->setEnabled(m_analysis != nullptr);
    m_save->setEnabled(true);
}

void ReportView::leaveOpened()
{
    m_opened.reset();
    m_own->hide();
    m_save->setEnabled(m_analysis != nullptr);
    refresh();
}

void ReportView::showReport(const std::shared_ptr<const sim::Report>& report)
{
    m_report = report;
    m_skip->hide();
    if (m_opened)
        return;
    m_pages->setPages(pagesOf(*report));
    const sim::ReportAnswer* fits = report->findAnswer("fits");
    const sim::ReportAnswer* next = report->findAnswer("next");
    m_summary->setText(tr("%n page(s). Fits: %1. Next: %2.", nullptr, pageCount())
                           .replace(QLatin1String("page(s)"), pageCount() == 1 ? QStringLiteral("page") : QStringLiteral("pages"))
                           .arg(QString::fromStdString(fits->headline).toLower(), QString::fromStdString(next->headline)));
    Q_EMIT reportShown();
}

void ReportView::showEvent(QShowEvent* event)
{
    View::showEvent(event);
    refresh();
}

void ReportView::changeEvent(QEvent* event)
{
    View::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        m_pages->update();
    if (const auto& shown = m_opened ? m_opened : m_report; event->type() == QEvent::FontChange && shown)
        m_pages->setPages(pagesOf(*shown));
}

sim::Report ReportView::currentReport() const
{
    if (m_opened)
        return *m_opened;
    if (m_report && !m_isStale && !m_job.isBusy())
        return *m_report;
    return sim::reportOf(*m_analysis, {.training = m_training});
}

int ReportView::pageCount() const
{
    return static_cast<int>(m_pages->pages().size());
}

DisplayList ReportView::picture() const
{
    if (m_pages->pages().empty())
        return {};
    const double top = m_scroll->verticalScrollBar()->value();
    return m_pages->pages()[m_pages->pageBetween(top, top + m_scroll->viewport()->height())];
}

QString ReportView::command() const
{
    return QStringLiteral("meshwright report ") + studyArguments(m_analysis ? m_analysis->source : sim::StudySource{})
        + (m_training ? QStringLiteral(" --train -o report.html") : QStringLiteral(" -o report.html"));
}

} // namespace meshwright::ui

#include "moc_report_view.cpp"
