// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/library_time.h"

#include "sim/collective/network_cost.h"
#include "sim/hardware/catalogue.h"
#include "tests/test_class.h"

namespace tst_library_time {

using namespace meshwright;
using namespace meshwright::sim;

/// What a library adds to the links: start, steps and bandwidth of its protocols.
class TestLibraryTime : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void ring();
    void protocolsBySize();
    void trees();
    void switchAdds();
    void allToAll();
    void ringLinks();
    void nothingToDo();
    void catalogueChips();
    void withoutALibrary();
};

namespace {

constexpr double kMiB = 1024.0 * 1024.0;

CollectiveLibrary library()
{
    return {"test", 10e-6, {{"short", 0.1, 1e-6, 2e-6}, {"long", 1.0, 5e-6, {}}}, 20e-6, {}, {}};
}

LibraryGroup group(double inner, double outer = 1.0)
{
    return {inner, outer, 100e9, 3e-6, 10e9, 8e-6, 0.0, false};
}

bool near(double a, double b)
{
    return qAbs(a - b) <= 1e-12 * (qAbs(a) + qAbs(b)) + 1e-18;
}

} // namespace

void TestLibraryTime::ring()
{
    const double bytes = 1024.0 * kMiB;
    QVERIFY(near(libraryAllGather(bytes, group(8), library()).seconds, 10e-6 + 7 * 5e-6 + 7.0 / 8 * bytes / 100e9));
    QVERIFY(near(libraryAllReduce(bytes, group(8), library()).seconds, 10e-6 + 14 * 5e-6 + 14.0 / 8 * bytes / 100e9));
    // One ring over all devices for each NIC; the network's step where the protocol has none.
    QVERIFY(
        near(libraryAllGather(bytes, group(8, 4), library()).seconds, 10e-6 + 28 * 5e-6 + 3 * 8e-6 + 31.0 / 32 * bytes / 80e9));
}

void TestLibraryTime::protocolsBySize()
{
    const CollectiveLibrary kept = library(); // a protocol's name is the library's own
    const LibraryTime little = libraryAllReduce(1024.0, group(8), kept);
    QCOMPARE(QByteArray(little.protocol.data()), QByteArray("short"));
    QVERIFY(near(little.seconds, 10e-6 + 14 * 1e-6 + 14.0 / 8 * 1024 / 10e9));
    QCOMPARE(QByteArray(libraryAllReduce(64 * kMiB, group(8), kept).protocol.data()), QByteArray("long"));
    double before = 0.0;
    for (double bytes = 1.0; bytes < 1e10; bytes *= 1.7) {
        const double seconds = libraryAllReduce(bytes, group(8, 2), library()).seconds;
        QVERIFY(seconds > before);
        before = seconds;
    }
}

void TestLibraryTime::trees()
{
    // Many hosts and few bytes: a tree's steps are fewer.
    const LibraryTime tree = libraryAllReduce(1024.0, group(8, 16), library());
    QCOMPARE(QByteArray(tree.algorithm), QByteArray("double binary tree"));
    // Many bytes: between two hosts they go once over the NICs, among more twice; a tree has 0.9 of a ring's bandwidth.
    const double bytes = 1024.0 * kMiB;
    const auto byTrees
        = [&](const LibraryGroup& on) { return libraryAllReduce(bytes, on, library(), LibraryAlgorithm::Tree).seconds; };
    QVERIFY(near(byTrees(group(1, 2)), 10e-6 + 2 * 8e-6 + bytes / 10e9 / 0.9));
    QVERIFY(near(byTrees(group(1, 4)), 10e-6 + 4 * 8e-6 + 2 * bytes / 10e9 / 0.9));
    QVERIFY(tree.seconds < libraryAllReduce(1024.0, group(8, 16), library(), LibraryAlgorithm::Ring).seconds);
    // Many bytes: a ring's are fewer.
    QCOMPARE(QByteArray(libraryAllReduce(4096 * kMiB, group(8, 16), library()).algorithm), QByteArray("ring"));
}

void TestLibraryTime::switchAdds()
{
    LibraryGroup adding = group(8);
    adding.inSwitchBytesPerSecond = 80e9;
    const LibraryTime time = libraryAllReduce(256 * kMiB, adding, library());
    QCOMPARE(QByteArray(time.algorithm), QByteArray("in-switch reduction"));
    QVERIFY(near(time.seconds, 10e-6 + 20e-6 + 256 * kMiB / 80e9));
    adding.inner = 2.0; // a ring of two moves the bytes once
    QCOMPARE(QByteArray(libraryAllReduce(256 * kMiB, adding, library()).algorithm), QByteArray("ring"));
}

void TestLibraryTime::allToAll()
{
    QVERIFY(near(libraryAllToAll(kMiB, group(8), library()).seconds, 10e-6 + 5e-6 + 7.0 / 8 * kMiB / 100e9));
    const double all = libraryAllToAll(64 * kMiB, group(8, 2), library()).seconds;
    QVERIFY(near(all, 10e-6 + 5e-6 + 2 * 8e-6 + 0.5 * 64 * kMiB / 10e9));
    QVERIFY(libraryAllToAll(64 * kMiB, group(8, 2), library(), 0.5).seconds < all);
}

void TestLibraryTime::ringLinks()
{
    CollectiveLibrary cube = library();
    cube.ringShares = {1.0 / 6, 2.0 / 6, 4.0 / 6};
    const double bytes = 1024 * kMiB;
    QVERIFY(near(libraryAllGather(bytes, group(2), cube).seconds, 10e-6 + 5e-6 + 0.5 * bytes * 6 / 100e9));
    QVERIFY(near(libraryAllGather(bytes, group(8), cube).seconds, 10e-6 + 7 * 5e-6 + 7.0 / 8 * bytes * 1.5 / 100e9));
}

void TestLibraryTime::nothingToDo()
{
    QCOMPARE(libraryAllReduce(kMiB, group(1), library()).seconds, 0.0);
    QCOMPARE(libraryAllGather(0.0, group(8), library()).seconds, 0.0);
    QCOMPARE(libraryAllToAll(kMiB, group(1), library()).seconds, 0.0);
}

/// Chips get the library of their vendor; a machine's collectives pay its start, and never beat the links.
void TestLibraryTime::catalogueChips()
{
    const Catalogue catalogue = valueOf(Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/catalogue.json"));
    for (const Chip& chip : catalogue.chips())
        QVERIFY2(chip.interconnect.library && chip.interconnect.library->startSeconds > 0.0, chip.key.c_str());
    const Machine hosts = valueOf(buildMachine(catalogue, {"a100", {}, 2, 8}));
    const MeshPlacement placement = valueOf(placeMesh(valueOf(Mesh::create({{"data", 2}, {"model", 8}})), hosts));
    for (const OpKind kind :
        {OpKind::AllReduce, OpKind::AllGather, OpKind::ReduceScatter, OpKind::AllToAll, OpKind::CollectivePermute}) {
        for (const std::int64_t bytes : {std::int64_t{64}, std::int64_t{1} << 20, std::int64_t{1} << 30}) {
            for (const AxisRefs& axes : {AxisRefs{wholeAxis(placement.mesh(), 0)}, AxisRefs{wholeAxis(placement.mesh(), 1)}}) {
                CollectiveRequest request = requestOn(placement, kind, axes, bytes);
                const CollectiveEstimate estimate = estimateCollective(request);
                QCOMPARE(estimate.seconds, collectiveSeconds(request));
                QVERIFY(estimate.seconds >= estimate.lowerBoundSeconds);
                QVERIFY(estimate.seconds > 12e-6);
                QVERIFY(estimate.formula.find("NCCL") != std::string::npos);
            }
        }
    }
    const Machine slice = valueOf(buildMachine(catalogue, {"v5e", {4, 2}}));
    const MeshPlacement torus = valueOf(placeMesh(valueOf(Mesh::create({{"x", 8}})), slice));
    CollectiveRequest request = requestOn(torus, OpKind::AllGather, {wholeAxis(torus.mesh(), 0)}, 1 << 20);
    const double with = collectiveSeconds(request);
    request.library = nullptr;
    QVERIFY(near(with - collectiveSeconds(request), slice.chip.interconnect.library->startSeconds));
}

void TestLibraryTime::withoutALibrary()
{
    const CollectiveLibrary none;
    QVERIFY(near(libraryAllGather(kMiB, group(4), none).seconds, 3 * 3e-6 + 0.75 * kMiB / 100e9));
}

MESHWRIGHT_TEST(TestLibraryTime)

} // namespace tst_library_time

#include "tst_library_time.moc"
