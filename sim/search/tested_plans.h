// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/search/search.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// Plans of a search on one machine with what the simulator says of them. Without a test their estimates stand.
class TestedPlans {
public:
    /// Of `mostTests` plans each is simulated once, the others not at all.
    TestedPlans(PlanTest test, std::size_t mostTests, std::stop_token stop);

    /// Puts what is known of the plan into it, with sentences of its time and memory before those that it has. False: it is to be simulated, and cannot be,
    /// or there is no time.
    bool take(FoundPlan& plan);

    bool simulates() const { return static_cast<bool>(m_test); }

protected:
    /// Puts the quickest of these that fit into the result, one for each mesh, with why the others are slower; where none fits the smallest.
    /// Returns those that fit.
    std::vector<FoundPlan> report(SearchResult& result, std::vector<FoundPlan> plans, std::size_t top) const;

private:
    using Key = std::pair<std::vector<std::pair<std::string, std::string>>, double>;

    PlanTest m_test;
    std::size_t m_mostTests;
    std::stop_token m_stop;
    std::map<std::pair<std::string, Key>, PlanTrial> m_known; ///< by mesh, specs and estimate
};

/// The same, with all that were looked at. `Layout`: what the search knows a plan by.
template <typename Layout>
class LookedPlans : public TestedPlans {
public:
    using TestedPlans::TestedPlans;

    struct Looked {
        Layout layout;
        FoundPlan plan;
    };

    bool empty() const { return m_looked.empty(); }

    /// Null: it is not known what it takes.
    const Looked* look(Layout layout, FoundPlan plan)
    {
        if (!take(plan))
            return nullptr;
        m_looked.push_back({std::move(layout), std::move(plan)});
        return &m_looked.back();
    }

    /// That fits; where none does the quickest of all. Precondition: there is one.
    const Looked& quickest() const
    {
        return *std::ranges::min_element(
            m_looked, {}, [](const Looked& one) { return std::pair(!one.plan.fits, one.plan.seconds()); });
    }

    std::vector<FoundPlan> report(SearchResult& result, std::size_t top) const
    {
        std::vector<FoundPlan> plans;
        for (const Looked& one : m_looked)
            plans.push_back(one.plan);
        return TestedPlans::report(result, std::move(plans), top);
    }

private:
    std::deque<Looked> m_looked;
};

/// Why no layout of a kind is on a mesh.
struct NoLayout {
    std::string why; ///< empty: the mesh is not of the kind
    bool isMemory = false; ///< there are layouts, and none has room
};

/// The reason that says most of several meshes: the first of memory, else the first of what cannot be split.
std::string whyNoneOf(const std::vector<NoLayout>& meshes, std::int64_t devices);

/// A kind of layout at its best; null: it has none that is known, for this reason.
TemplateScore scoreOf(const char* name, const FoundPlan* found, const FoundPlan& best, const std::string& whyNone);

/// The best plan that makes one choice otherwise.
OtherChoice otherChoice(std::string choice, std::string other, const FoundPlan& found, const FoundPlan& best);

/// What a quarter more memory is worth: "with a quarter more memory: 3.10 s a step (0.02 s less for each GiB)". `moreBytes`: the quarter.
void setMoreMemory(SearchResult& result, const FoundPlan& best, const FoundPlan& more, double moreBytes);

} // namespace meshwright::sim
