// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/random_programs/coverage.h"
#include "tests/random_programs/judge.h"
#include "tests/random_programs/planted_faults.h"
#include "tests/random_programs/workers.h"
#include "tests/rank_threads.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <QFile>

#include <cmath>
#include <random>

namespace tst_random_programs {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

constexpr int kProcesses = 2;

/// Devices that are threads take their time to start: fewer programs there, and none that are planted with faults.
bool hasThreads()
{
    return qgetenv("MESHWRIGHT_ENGINE") == "threads";
}

/// A letter for the verdict, then what there is to say; behind it what the program covers.
constexpr char kEnd = '\x1f';

std::string judgedText(std::uint64_t seed)
{
    Judged judged;
    if (const std::string wrong = prepare(programOf(randomRecipe(seed)), judged); !wrong.empty())
        return "F" + wrong + kEnd;
    const OnShards on = partitioned(judged);
    const auto& propagated = on.partitioned.propagated.functions;
    const std::string covered = propagated.empty()
        ? ""
        : Coverage::textOf(judged.program.functions.front(), propagated.front(), on.function().warnings.size());
    const Verdict verdict
        = on.verdict.kind != Verdict::Kind::Right ? on.verdict : run(judged, on.stage(), on.function(), *devicesFor(on.stage()));
    const char letter = verdict.kind == Verdict::Kind::Right ? 'R' : verdict.isFault() ? 'F' : 'N';
    return letter + verdict.text + kEnd + covered;
}

/// What is wrong with a program, or that it is refused, by a process of its own; empty when nothing is.
std::string wrongOf(const std::function<Program()>& make)
{
    return Workers::once([&] {
        const Verdict verdict = verdictOf(make());
        return verdict.kind == Verdict::Kind::Refused ? "refused " + verdict.text : verdict.text;
    });
}

/// Leaves out of a recipe what it can do without, and says what is left.
void tell(std::uint64_t seed, const std::string& wrong, int times)
{
    const std::string kind = kindOf(wrong);
    const Recipe recipe
        = shrunk(randomRecipe(seed), [&](const Recipe& r) { return kindOf(wrongOf([&] { return programOf(r); })) == kind; });
    const Program small
        = shrunk(programOf(recipe), [&](const Program& program) { return kindOf(wrongOf([&] { return program; })) == kind; });
    const std::string text = writeProgram(small);
    const QString name = QString("random_program_%1.mlir").arg(seed);
    QFile file(name);
    if (file.open(QIODevice::WriteOnly))
        file.write(text.c_str());
    qWarning("%d times, first by seed %llu: %s\nwithout what it can do without: %s\n(also in %s; run --verify takes it)\n%s",
        times, static_cast<unsigned long long>(seed), wrong.c_str(), wrongOf([&] { return small; }).c_str(), qPrintable(name),
        text.c_str());
}

struct Tally {
    struct Seen {
        int times = 0;
        std::uint64_t first = 0; ///< seed
        std::string text;
    };
    int right = 0;
    std::map<std::string, Seen> faults; ///< by kind
    std::map<std::string, Seen> refused; ///< by ids
    Coverage coverage;

    static int sum(const std::map<std::string, Seen>& seen)
    {
        int sum = 0;
        for (const auto& [name, what] : seen)
            sum += what.times;
        return sum;
    }
};

void note(std::map<std::string, Tally::Seen>& seen, const std::string& kind, std::uint64_t seed, std::string text)
{
    Tally::Seen& what = seen[kind];
    if (what.times++ == 0 || seed < what.first) {
        what.first = seed;
        what.text = std::move(text);
    }
}

/// Judges the programs of some seeds.
void judge(std::uint64_t first, std::uint64_t count, Tally& tally)
{
    Workers::run(first, count, kProcesses, judgedText, [&](std::uint64_t seed, const std::string& answer) {
        const std::size_t end = answer.rfind(kEnd);
        const std::string text = answer.substr(0, end);
        if (end != std::string::npos && end + 1 < answer.size())
            tally.coverage.add(answer.substr(end + 1));
        if (text.starts_with('R')) {
            ++tally.right;
        } else if (text.starts_with('N')) {
            note(tally.refused, text.substr(1), seed, "refused " + text.substr(1));
        } else {
            const std::string wrong = text.starts_with('F') ? text.substr(1) : text;
            note(tally.faults, kindOf(wrong), seed, wrong);
        }
        return true;
    });
}

} // namespace

/// Programs over the op set, on meshes of 1 to 64 devices, with shardings of all kinds: each is read as it was written, reaches a fixed point,
/// partitions, runs on devices, and gives what the plain evaluator gives, to the last bit where numbers are exact.
/// In the environment: MESHWRIGHT_RANDOM_PROGRAMS=500000 for a long run, MESHWRIGHT_SEED the first seed (else a fresh one).
class TestRandomPrograms : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void giveWhatTheyMean();
    void plantedFaultsAreCaught();
    void equalOverSeveralProcesses();
};

void TestRandomPrograms::giveWhatTheyMean()
{
    const bool isLong = qEnvironmentVariableIsSet("MESHWRIGHT_RANDOM_PROGRAMS");
    const auto count = static_cast<std::uint64_t>(
        isLong ? qEnvironmentVariableIntValue("MESHWRIGHT_RANDOM_PROGRAMS") : (hasThreads() ? 200 : 1000));
    const std::uint64_t fresh = freshSeed();
    qInfo("fresh seeds from %llu", static_cast<unsigned long long>(fresh));
    Tally tally;
    QElapsedTimer timer;
    timer.start();
    judge(fresh, isLong ? count : count / 2, tally);
    if (!isLong)
        judge(0, count / 2, tally);
    const int faults = Tally::sum(tally.faults);
    const int refusals = Tally::sum(tally.refused);
    const auto judged = static_cast<double>(tally.right + faults + refusals);
    std::string refused;
    for (const auto& [ids, seen] : tally.refused)
        refused += fmt::format(" {} ({})", ids, seen.times);
    qInfo("%d right, %d at fault, %d refused:%s; %.1f s; the median has %zu ops; %.3f %% of ops are computed whole", tally.right,
        faults, refusals, refused.c_str(), static_cast<double>(timer.elapsed()) / 1e3, tally.coverage.medianLength(),
        100 * tally.coverage.wholeShare());
    if (isLong)
        qInfo("programs that have an op, and a dimension of it split:\n%s", tally.coverage.table().c_str());
    for (const auto& [kind, seen] : tally.faults)
        tell(seen.first, seen.text, seen.times);
    const double most = 0.02 * judged;
    const bool isTooMuch = refusals > most + 3.0 * std::sqrt(most); // three deviations: few programs may be odd ones
    for (const auto& [ids, seen] : tally.refused) {
        if (isTooMuch)
            tell(seen.first, seen.text, seen.times);
    }
    QCOMPARE(faults, 0);
    QVERIFY(!isTooMuch);
    QVERIFY(tally.coverage.medianLength() >= 12);
    QVERIFY(tally.coverage.wholeShare() <= 0.01);
    // Each op with each dimension split as often as makes 1,000 times in 500,000 programs.
    const double least = judged * 1000 / 500'000;
    for (const auto& [name, counts] : tally.coverage.counts()) {
        for (std::size_t dim = 0; dim < Coverage::kDims && judged >= 100'000; ++dim)
            QVERIFY2(counts.has[dim] == 0 || static_cast<double>(counts.split[dim]) >= least,
                fmt::format("{} with dim {} split: {}", name, dim, counts.split[dim]).c_str());
    }
}

/// Programs on shards that are made wrong in one place: each way to do so is noticed.
void TestRandomPrograms::plantedFaultsAreCaught()
{
    constexpr std::uint64_t kDraws = 20'000;
    if (hasThreads())
        QSKIP("what a fault does is the same on all engines");
    if (!Workers::kInProcesses)
        QSKIP("a planted fault may end the process that runs it");
    const std::vector<PlantedFault> planted = plantedFaults();
    QVERIFY(planted.size() >= 30);
    const std::uint64_t fresh = std::random_device()();
    qInfo("fresh seeds from %llu", static_cast<unsigned long long>(fresh));
    std::set<std::size_t> caughtHere; // by a worker
    const auto work = [&](std::uint64_t seed) {
        Judged judged;
        std::string caught;
        if (!prepare(programOf(randomRecipe(seed)), judged).empty())
            return caught;
        const OnShards on = partitioned(judged);
        if (on.verdict.kind != Verdict::Kind::Right)
            return caught;
        const auto devices = devicesFor(on.stage(), 0.3);
        bool isRight = false; // as it is; known once something could be planted
        for (std::size_t i = 0; i < planted.size(); ++i) {
            DeviceFunction wrong = on.function();
            Random random(seed);
            if (caughtHere.contains(i) || !planted[i].plant(wrong, on.stage().mesh(), random))
                continue;
            if (!isRight && run(judged, on.stage(), on.function(), *devices).kind != Verdict::Kind::Right)
                return caught;
            isRight = true;
            // What is not a program any more would be found before it runs.
            std::fprintf(stderr, "planted %zu \n", i); // for who finds this process ended
            const bool isSound = verify(wrong.function, on.stage().meshes).empty();
            if (isSound && run(judged, on.stage(), wrong, *devices).kind == Verdict::Kind::Right)
                continue;
            caughtHere.insert(i);
            caught += fmt::format("{} ", i);
        }
        return caught;
    };
    std::map<std::size_t, std::uint64_t> draws; // until each was caught
    std::uint64_t drawn = 0;
    Workers::run(fresh, kDraws, kProcesses, work, [&](std::uint64_t, const std::string& answer) {
        ++drawn;
        const std::size_t last = answer.rfind("planted ");
        if (!answer.starts_with(Workers::kCrash) || last != std::string::npos) {
            const std::string caught
                = answer.starts_with(Workers::kCrash) ? answer.substr(last + 8, answer.find(' ', last + 8) - last - 8) : answer;
            for (const QString& index : QString::fromStdString(caught).split(' ', Qt::SkipEmptyParts))
                draws.emplace(index.toULongLong(), drawn);
        }
        return draws.size() < planted.size();
    });
    std::string text;
    for (const auto& [i, draw] : draws)
        text += fmt::format("\n{:>7}  {}", draw, planted[i].name);
    qInfo("draws until each was caught, of %llu:%s", static_cast<unsigned long long>(drawn), text.c_str());
    for (std::size_t i = 0; i < planted.size(); ++i)
        QVERIFY2(draws.contains(i), planted[i].name);
}

/// The results of a recipe's program on devices that one process has, or several share; empty when it cannot be loaded or fails.
static std::vector<HostArray> resultsOf(const Judged& judged, const std::shared_ptr<Ranks>& ranks)
{
    const OnShards on = partitioned(judged);
    if (on.verdict.kind != Verdict::Kind::Right)
        return {};
    const auto devices = VirtualDevices::create(on.stage().mesh().deviceCount(), {.permits = 1, .ranks = ranks});
    if (!devices)
        return {};
    std::vector<HostArray> results;
    const Verdict verdict = run(judged, on.stage(), on.function(), **devices, &results);
    return verdict.kind == Verdict::Kind::Right ? results : std::vector<HostArray>();
}

void TestRandomPrograms::equalOverSeveralProcesses()
{
    const std::uint64_t fresh = std::random_device()();
    qInfo("fresh seeds from %llu", static_cast<unsigned long long>(fresh));
    int compared = 0;
    for (std::uint64_t i = 0; i < 60; ++i) {
        const std::uint64_t seed = i % 2 == 0 ? i : fresh + i;
        Judged judged;
        QVERIFY(prepare(programOf(randomRecipe(seed)), judged).empty());
        const std::int64_t devices = judged.program.meshes.front().mesh.deviceCount();
        const int count = i % 4 < 2 ? 2 : 3;
        if (devices < count)
            continue;
        const std::vector<HostArray> alone = resultsOf(judged, nullptr);
        if (alone.empty()) // refused
            continue;
        QVERIFY2(tests::onRanks(count, [&](const std::shared_ptr<Ranks>& ranks) { return resultsOf(judged, ranks) == alone; }),
            fmt::format("seed {}", seed).c_str());
        ++compared;
    }
    QVERIFY(compared > 30);
}

MESHWRIGHT_TEST(TestRandomPrograms)

} // namespace tst_random_programs

#include "tst_random_programs.moc"
