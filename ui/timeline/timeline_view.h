// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/jobs/latest_worker.h"
#include "ui/models/selection.h"
#include "ui/timeline/timeline_canvas.h"
#include "ui/widgets/view.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

class QLabel;
class QLineEdit;
class QSplitter;
class QToolButton;

namespace meshwright::ui {

class DetailsPane;
class Legend;

/// The timeline of a step: simulated above measured, rows by device and stream, with search, the details of a slice and the totals of an area.
/// Timelines of more than kAtOnce slices are read, searched and added up off the UI thread.
class TimelineView : public View {
    Q_OBJECT

public:
    static constexpr std::size_t kAtOnce = 50'000;

    explicit TimelineView(Selection& selection, QWidget* parent = nullptr);
    ~TimelineView() override;

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;

    /// A measured step by both clocks; null takes it away. `source`: of the study that ran, where that is known: its title says so when the study is
    /// another one since.
    void setMeasured(std::shared_ptr<const Timeline> virtualTime, std::shared_ptr<const Timeline> wall,
        std::optional<sim::StudySource> source = {});

    /// A trace of another program below the others; `title` is its file's name. Null takes it away.
    void setForeign(std::shared_ptr<const Timeline> timeline, const std::string& title);
    bool hasForeign() const { return !m_foreignTitle.empty(); }

    /// The visible window of every group that is not collapsed.
    DisplayList picture() const override;

    QString command() const override;

    /// Which clock of the measured step is on screen.
    Clock measuredClock() const { return m_showsWall ? Clock::Wall : Clock::Virtual; }
    void setMeasuredClock(Clock clock);

    /// True while slices are being read, searched or added up.
    bool isBusy() const;

    TimelineCanvas& canvas() { return *m_canvas; }
    DetailsPane& details() { return *m_details; }

    /// All keys and gestures, as rich text.
    static QString help();

protected:
    void forgetStudy() override;
    void changeEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    using Part = std::shared_ptr<const TimelinePart>;

    QWidget* makeToolBar();
    QToolButton* makeButton(const QString& text, const QString& toolTip);
    void connectCanvas();
    bool isMeasuredStale() const;
    void showModel();
    void showState();
    void showProblem(const sim::Analysis& analysis);
    void shareHeight();
    void chooseStretch();
    void onSliceClicked();
    void onOperationChanged(const QString& name);
    void onCollectiveChanged();
    std::optional<CollectiveId> collectiveOf(SliceId slice) const;
    void select(std::optional<SliceId> slice);
    void startSearch();
    void setMatches(std::shared_ptr<const SearchMatches> matches);
    void showCount();
    void goToMatch(int step);
    void startTotals();
    void showHelp();

    /// Runs a job at once where there is little to do; otherwise on the worker.
    static void run(LatestWorker& worker, std::size_t slices, LatestWorker::Job job);

    Selection& m_selection;
    std::shared_ptr<const sim::Analysis> m_analysis; ///< the latest; null before the first
    std::shared_ptr<const sim::SimulatedStudy> m_simulated; ///< that is shown, or being read
    Part m_simulatedPart;
    std::string m_simulatedTitle; ///< of that part
    std::uint64_t m_generation = 0; ///< of the analysis whose collectives its slices number
    std::uint64_t m_latestGeneration = 0; ///< of the latest analysis with a timeline, shown or being read
    Part m_virtualPart;
    Part m_wallPart;
    Part m_foreignPart;
    std::string m_foreignTitle;
    std::optional<sim::StudySource> m_measuredSource; ///< of the study that ran
    bool m_measuredIsStale = false; ///< its title says that the study is another one since
    bool m_showsWall = false;
    std::optional<bool> m_stretch; ///< as the user chose
    bool m_heightIsUsers = false; ///< the user moved the splitter
    std::size_t m_slicesRead = 0; ///< of what is being read

    TimelineCanvas* m_canvas = nullptr;
    DetailsPane* m_details = nullptr;
    Legend* m_legend = nullptr;
    QSplitter* m_splitter = nullptr;
    QLabel* m_notice = nullptr;
    QLineEdit* m_search = nullptr;
    QToolButton* m_regularExpression = nullptr;
    QToolButton* m_previous = nullptr;
    QToolButton* m_next = nullptr;
    QLabel* m_count = nullptr;
    QLabel* m_searchProblem = nullptr;
    QToolButton* m_clockButton = nullptr;
    QToolButton* m_scaleButton = nullptr;
    QToolButton* m_helpButton = nullptr;

    std::shared_ptr<const SearchMatches> m_matches; ///< null: nothing is searched, or not yet

    LatestWorker m_simulatedReader;
    LatestWorker m_measuredReader;
    LatestWorker m_foreignReader;
    LatestWorker m_searcher;
    LatestWorker m_adder;
};

} // namespace meshwright::ui
