// SPDX-License-Identifier: GPL-3.0-or-later
// Fits the constants of software stacks to the records that the calibration names for them, through the programs of their steps.
//   fit_constants CALIBRATION.json [STACK[/CHIP]] [--add NAME[=VALUE]]... [--all] -- RECORDS.json...
// For each stack and chip: the error of records that are left out of the fit (each in turn), with all its constants and without each; one that does not lower it
// goes, the worst first. Then each record's error before and after, and the constants that are left as they fit. `--add` tries a constant more, from VALUE on;
// `--all` keeps all, and leaves nothing out.
//
// The fit takes the least sum of squares of log(predicted / measured) / 0.03 and of log(constant / prior) / 0.3: the prior is what the chip's class has, or where
// that has none, where the fit begins. Constants without an effect stay where they are.
#include "core/support/file.h"
#include "core/support/parallel_for.h"
#include "core/support/resources.h"
#include "sim/hardware/catalogue.h"
#include "sim/session/record_step.h"
#include "sim/validate/validate.h"

#include <Eigen/Dense>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace meshwright;
using namespace meshwright::sim;
using Json = nlohmann::json;

constexpr double kRecordSpread = 0.03;
constexpr double kPriorSpread = 0.3;

/// Named numbers of a stack on a chip.
struct Constants {
    std::vector<std::string> names;
    Eigen::VectorXd logs;
};

/// What is left of the ending `_s` is not a share.
bool isShare(const std::string& name)
{
    return !name.ends_with("_s") && name != "optimizer_bytes";
}

class Fit {
public:
    Fit(Json calibration, std::string stack, std::string chip, const Catalogue& catalogue, std::vector<Record> records)
        : m_json(std::move(calibration))
        , m_stack(std::move(stack))
        , m_chip(std::move(chip))
        , m_catalogue(catalogue)
        , m_records(std::move(records))
    {
        Json& fittedOn = m_json["stacks"][m_stack]["chips"][m_chip]["fitted_on"];
        m_ids = fittedOn.get<std::vector<std::string>>();
        fittedOn = Json::array(); // so that they are predicted
        std::erase_if(m_records, [&](const Record& record) { return std::ranges::find(m_ids, record.id) == m_ids.end(); });
    }

    void run(const std::map<std::string, double>& added, bool keepsAll);

private:
    using Used = std::vector<bool>; ///< of the records

    /// log(predicted / measured) of the records in `used`; others are 0.
    Eigen::VectorXd errors(const Constants& constants, const Used& used) const;
    Constants fitted(Constants start, const Used& used) const;
    double leftOut(const Constants& start) const;
    Constants worthHaving(Constants constants) const;
    double priorOf(const std::string& name, double start) const;

    Json m_json;
    std::string m_stack;
    std::string m_chip;
    const Catalogue& m_catalogue;
    std::vector<Record> m_records;
    std::vector<std::string> m_ids;
};

Eigen::VectorXd Fit::errors(const Constants& constants, const Used& used) const
{
    Json json = m_json;
    Json& own = json["stacks"][m_stack]["chips"][m_chip]["constants"];
    own = Json::object();
    for (std::size_t i = 0; i < constants.names.size(); ++i)
        own[constants.names[i]] = std::exp(constants.logs[static_cast<Eigen::Index>(i)]);
    const Calibration calibration = valueOf(Calibration::parse(json.dump(), "fit"));
    const StepSimulator simulate = stepSimulator(m_catalogue, calibration);
    Eigen::VectorXd result = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(m_records.size()));
    for (std::size_t i = 0; i < m_records.size(); ++i) {
        if (!used[i])
            continue;
        const FileValidation one = validateRecords({m_records[i]}, m_records[i].file, m_catalogue, calibration, simulate);
        if (one.steps.empty())
            continue;
        const StepPrediction& step = one.steps.front();
        if (step.measuredSeconds)
            result[static_cast<Eigen::Index>(i)] = std::log(step.simulated.seconds / *step.measuredSeconds);
    }
    return result;
}

double Fit::priorOf(const std::string& name, double start) const
{
    for (const auto& [chipClass, constants] : m_json["classes"].items()) {
        const bool isClass
            = valueOf(m_catalogue.find(m_chip)).chip->chipClass == ChipClass::Tpu ? chipClass == "tpu" : chipClass == "gpu";
        if (isClass && constants.value(name, 0.0) > 0.0)
            return std::log(constants[name].get<double>());
    }
    return start;
}

Constants Fit::fitted(Constants start, const Used& used) const
{
    constexpr int kRounds = 3;
    constexpr double kStep = 0.02;
    const Eigen::Index count = start.logs.size();
    Eigen::VectorXd priors(count);
    for (Eigen::Index i = 0; i < count; ++i)
        priors[i] = priorOf(start.names[static_cast<std::size_t>(i)], start.logs[i]);
    const auto cost = [&](const Eigen::VectorXd& error, const Eigen::VectorXd& logs) {
        return error.squaredNorm() / (kRecordSpread * kRecordSpread)
            + (logs - priors).squaredNorm() / (kPriorSpread * kPriorSpread);
    };
    Eigen::VectorXd error = errors(start, used);
    for (int round = 0; round < kRounds && count > 0; ++round) {
        Eigen::MatrixXd slope(error.size(), count);
        parallelFor(
            static_cast<std::size_t>(count), workerCount(0), {},
            [&](unsigned, std::size_t i) {
                Constants moved = start;
                const auto at = static_cast<Eigen::Index>(i);
                moved.logs[at] -= kStep;
                slope.col(at) = (error - errors(moved, used)) / kStep;
            },
            1);
        const Eigen::MatrixXd normal = slope.transpose() * slope / (kRecordSpread * kRecordSpread)
            + Eigen::MatrixXd::Identity(count, count) / (kPriorSpread * kPriorSpread);
        const Eigen::VectorXd right = -slope.transpose() * error / (kRecordSpread * kRecordSpread)
            + (priors - start.logs) / (kPriorSpread * kPriorSpread);
        Eigen::VectorXd move = normal.ldlt().solve(right);
        const double before = cost(error, start.logs);
        bool moved = false;
        for (int half = 0; half < 4 && !moved; ++half, move /= 2.0) { // the slopes change where other parts decide
            Constants next = start;
            next.logs += move;
            for (Eigen::Index i = 0; i < count; ++i) {
                if (isShare(start.names[static_cast<std::size_t>(i)]))
                    next.logs[i] = std::min(next.logs[i], 0.0);
            }
            const Eigen::VectorXd nextError = errors(next, used);
            if (cost(nextError, next.logs) < before) {
                moved = cost(nextError, next.logs) < 0.999 * before;
                start = std::move(next);
                error = nextError;
                if (!moved)
                    return start;
            }
        }
        if (!moved)
            break;
    }
    return start;
}

/// The mean error of records that the fit has not seen. Precondition: there are two or more.
double Fit::leftOut(const Constants& start) const
{
    double sum = 0.0;
    for (std::size_t i = 0; i < m_records.size(); ++i) {
        Used others(m_records.size(), true);
        others[i] = false;
        Used alone(m_records.size(), false);
        alone[i] = true;
        sum += std::abs(std::expm1(errors(fitted(start, others), alone)[static_cast<Eigen::Index>(i)]));
    }
    return sum / static_cast<double>(m_records.size());
}

/// Those constants without any of which records that are left out are predicted worse.
Constants Fit::worthHaving(Constants constants) const
{
    double error = leftOut(constants);
    fmt::print("  left out {:.1f} %", 100.0 * error);
    while (!constants.names.empty()) {
        std::optional<Constants> best;
        for (std::size_t i = 0; i < constants.names.size(); ++i) {
            Constants others = constants;
            others.names.erase(others.names.begin() + static_cast<std::ptrdiff_t>(i));
            others.logs.resize(constants.logs.size() - 1);
            for (Eigen::Index k = 0; k < others.logs.size(); ++k)
                others.logs[k] = constants.logs[k + (k >= static_cast<Eigen::Index>(i) ? 1 : 0)];
            const double without = leftOut(others);
            fmt::print(", without {} {:.1f} %", constants.names[i], 100.0 * without);
            if (without > error)
                continue;
            error = without;
            best = std::move(others);
        }
        if (!best)
            break;
        constants = *std::move(best);
        fmt::print("\n  with {} of them {:.1f} %", constants.names.size(), 100.0 * error);
    }
    fmt::print("\n");
    return constants;
}

void Fit::run(const std::map<std::string, double>& added, bool keepsAll)
{
    Constants start;
    std::map<std::string, double> values
        = m_json["stacks"][m_stack]["chips"][m_chip]["constants"].get<std::map<std::string, double>>();
    values.insert(added.begin(), added.end());
    std::erase_if(values, [](const auto& one) { return one.second <= 0.0; });
    start.logs.resize(static_cast<Eigen::Index>(values.size()));
    for (const auto& [name, value] : values) {
        start.logs[static_cast<Eigen::Index>(start.names.size())] = std::log(value);
        start.names.push_back(name);
    }
    fmt::print("{} on {}\n", m_stack, m_chip);
    const Used all(m_records.size(), true);
    const Eigen::VectorXd before = errors(start, all);
    for (std::size_t i = m_records.size(); i-- > 0;) {
        if (before[static_cast<Eigen::Index>(i)] == 0.0) {
            fmt::print("  {}: no program says it\n", m_records[i].id);
            m_records.erase(m_records.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    if (m_records.empty())
        return;
    const Used seen(m_records.size(), true);
    const Eigen::VectorXd first = errors(start, seen);
    if (m_records.size() > 1 && !keepsAll)
        start = worthHaving(start);
    const Constants best = fitted(start, seen);
    const Eigen::VectorXd last = errors(best, seen);
    for (std::size_t i = 0; i < m_records.size(); ++i)
        fmt::print("  {:+6.1f} % -> {:+6.1f} %  {}\n", 100.0 * std::expm1(first[static_cast<Eigen::Index>(i)]),
            100.0 * std::expm1(last[static_cast<Eigen::Index>(i)]), m_records[i].id);
    fmt::print(
        "  mean error seen {:.1f} %\n  {{", 100.0 * last.unaryExpr([](double e) { return std::abs(std::expm1(e)); }).mean());
    for (std::size_t i = 0; i < best.names.size(); ++i)
        fmt::print("{}\"{}\": {:.4g}", i == 0 ? "" : ", ", best.names[i], std::exp(best.logs[static_cast<Eigen::Index>(i)]));
    fmt::print("}}\n");
    std::fflush(stdout);
}

} // namespace

int main(int count, char** arguments)
{
    std::vector<std::string> words(arguments + 1, arguments + count);
    const auto dashes = std::ranges::find(words, "--");
    if (words.empty() || dashes == words.begin() || dashes == words.end()) {
        std::fputs(
            "usage: fit_constants CALIBRATION.json [STACK[/CHIP]] [--add NAME[=VALUE]]... [--all] -- RECORDS.json...\n", stderr);
        return 2;
    }
    std::string only;
    std::map<std::string, double> added;
    bool keepsAll = false;
    for (auto word = words.begin() + 1; word != dashes; ++word) {
        if (*word == "--add" && word + 1 != dashes) {
            const std::string text = *++word;
            const auto equals = text.find('=');
            added[text.substr(0, equals)] = equals == std::string::npos ? 0.5 : std::stod(text.substr(equals + 1));
        } else if (*word == "--all") {
            keepsAll = true;
        } else {
            only = *word;
        }
    }
    const auto text = readFile(words.front());
    const auto catalogue = Catalogue::load(resourcesDirectory() / "hardware/catalogue.json");
    const auto files = recordFiles(std::vector<std::string>(dashes + 1, words.end()));
    if (!text || !catalogue || !files) {
        const Problems& problems = !text ? text.error() : !catalogue ? catalogue.error() : files.error();
        std::fprintf(stderr, "%s\n", describe(problems).c_str());
        return 3;
    }
    std::vector<Record> records;
    for (const auto& file : *files) {
        const auto some = readRecords(file);
        if (some)
            std::ranges::copy_if(
                *some, std::back_inserter(records), [](const Record& one) { return one.kind == "training_step"; });
    }
    const Json calibration = Json::parse(*text);
    for (const auto& [stack, of] : calibration["stacks"].items()) {
        const Json chips = of.value("chips", Json::object());
        for (const auto& [chip, constants] : chips.items()) {
            if (only.empty() || only == stack || only == stack + "/" + chip)
                Fit(calibration, stack, chip, *catalogue, records).run(added, keepsAll);
        }
    }
}
