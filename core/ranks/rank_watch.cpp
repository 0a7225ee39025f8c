// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ranks/rank_watch.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <random>

namespace meshwright {

namespace {

// What a process says of itself, a letter each; behind the second one come its problems, up to the end of the connection.
constexpr char kFarewell = 'B';
constexpr char kFailed = 'F';
constexpr char kEnded = 'E'; ///< the first one, to the others: another one is at fault

constexpr char kFieldEnd = '\x1f';
constexpr char kProblemEnd = '\x1e';

std::string written(const Problems& problems)
{
    std::string text;
    for (const Problem& problem : problems)
        text += problem.id + kFieldEnd + problem.message + kFieldEnd + problem.fix + kProblemEnd;
    return text;
}

/// The first of the problems that another process wrote.
Problem readProblem(std::string_view text, const std::string& sender)
{
    const std::vector<std::string> fields = split(std::string(text.substr(0, text.find(kProblemEnd))), kFieldEnd);
    if (fields.size() < 3)
        return {"MW1551", fmt::format("{} failed", sender), "see its output"};
    return {fields[0], fmt::format("{}: {}", sender, fields[1]), fields[2]};
}

std::string hostName()
{
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

bool waitFor(int descriptor, short events, int milliseconds)
{
    pollfd entry{descriptor, events, 0};
    return ::poll(&entry, 1, milliseconds) == 1;
}

} // namespace

class RankWatch::Socket {
public:
    explicit Socket(int descriptor)
        : m_descriptor(descriptor)
    {
    }
    ~Socket() { close(); }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    int descriptor() const { return m_descriptor; }
    bool isOpen() const { return m_descriptor >= 0; }
    void close()
    {
        if (isOpen())
            ::close(m_descriptor);
        m_descriptor = -1;
    }

    bool say(std::string_view text) const
    {
        while (!text.empty()) {
            const ssize_t sent = ::send(m_descriptor, text.data(), text.size(), MSG_NOSIGNAL);
            if (sent <= 0)
                return false;
            text.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }

    /// All that comes until so many bytes are there; false: they do not come.
    bool hear(std::span<char> bytes) const
    {
        constexpr int kPatienceMilliseconds = 10'000;
        while (!bytes.empty()) {
            const ssize_t got = waitFor(m_descriptor, POLLIN, kPatienceMilliseconds)
                ? ::recv(m_descriptor, bytes.data(), bytes.size(), 0)
                : ssize_t{0};
            if (got <= 0)
                return false;
            bytes = bytes.subspan(static_cast<std::size_t>(got));
        }
        return true;
    }

    int rank = 0; ///< at the other end
    std::string heard;

private:
    int m_descriptor;
};

namespace {

constexpr std::size_t kSecretBytes = 16;

/// What the first rank tells the others, as text.
struct Meeting {
    std::string hosts; ///< names and addresses, with commas between them
    std::string port;
    std::string secret; ///< so that nobody else is taken for a rank
};

std::string newSecret()
{
    std::random_device random;
    std::string secret;
    for (std::size_t i = 0; i < kSecretBytes; ++i)
        secret += static_cast<char>('a' + random() % 26);
    return secret;
}

/// A listening socket for `others` connections; -1 when there can be none.
int listenFor(int others, bool onThisHostOnly, std::string& port)
{
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(onThisHostOnly ? INADDR_LOOPBACK : INADDR_ANY);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (descriptor < 0 || ::bind(descriptor, generic, size) != 0 || ::listen(descriptor, others) != 0
        || ::getsockname(descriptor, generic, &size) != 0) {
        if (descriptor >= 0)
            ::close(descriptor);
        return -1;
    }
    port = std::to_string(ntohs(address.sin_port));
    return descriptor;
}

/// This computer's name, and addresses of its networks: other machines may not know the name.
std::string hostsOfThis(const std::string& name)
{
    constexpr int kMostAddresses = 16;
    std::string hosts = name;
    int addresses = 0;
    ifaddrs* found = nullptr;
    if (::getifaddrs(&found) != 0)
        return hosts;
    for (const ifaddrs* at = found; at != nullptr && addresses < kMostAddresses; at = at->ifa_next) {
        const bool isOther = at->ifa_addr != nullptr && at->ifa_addr->sa_family == AF_INET && (at->ifa_flags & IFF_LOOPBACK) == 0
            && (at->ifa_flags & IFF_UP) != 0;
        std::array<char, NI_MAXHOST> text{};
        if (!isOther
            || ::getnameinfo(at->ifa_addr, sizeof(sockaddr_in), text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
            continue;
        hosts += std::string(hosts.empty() ? "" : ",") + text.data();
        ++addresses;
    }
    ::freeifaddrs(found);
    return hosts;
}

/// A connection to an address, begun at most so long ago; -1 when there is none.
int connectTo(const addrinfo& address)
{
    constexpr int kPatienceMilliseconds = 2000;
    const int descriptor = ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol);
    if (descriptor < 0)
        return -1;
    int error = ::connect(descriptor, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
        socklen_t size = sizeof error;
        if (!waitFor(descriptor, POLLOUT, kPatienceMilliseconds)
            || ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
            error = ETIMEDOUT;
    }
    if (error == 0 && ::fcntl(descriptor, F_SETFL, 0) == 0)
        return descriptor;
    ::close(descriptor);
    return -1;
}

/// A connection to the first rank; -1 when it cannot be reached.
int connectTo(const Meeting& meeting)
{
    int descriptor = -1;
    for (const std::string& host : split(meeting.hosts, ',')) {
        addrinfo wanted{};
        wanted.ai_family = AF_INET;
        wanted.ai_socktype = SOCK_STREAM;
        addrinfo* found = nullptr;
        if (::getaddrinfo(host.c_str(), meeting.port.c_str(), &wanted, &found) != 0)
            continue;
        for (const addrinfo* at = found; at != nullptr && descriptor < 0; at = at->ai_next)
            descriptor = connectTo(*at);
        ::freeaddrinfo(found);
        if (descriptor >= 0)
            break;
    }
    return descriptor;
}

} // namespace

Result<std::unique_ptr<RankWatch>> RankWatch::start(Ranks& ranks)
{
    const std::string host = hostName();
    const auto hosts = ranks.all(host);
    if (!hosts)
        return hosts.error();
    ranks.setOnThisHost(static_cast<int>(std::count(hosts->begin(), hosts->end(), host)));
    const bool isOneHost = ranks.onThisHost() == ranks.size();

    Meeting meeting;
    int listening = -1;
    if (ranks.isFirst()) {
        meeting = {isOneHost ? "127.0.0.1" : hostsOfThis(host), "", newSecret()};
        listening = listenFor(ranks.size(), isOneHost, meeting.port);
    }
    const Socket listener(listening);
    const auto gathered
        = ranks.all(listening >= 0 ? fmt::format("{} {} {}", meeting.hosts, meeting.port, meeting.secret) : std::string());
    if (!gathered)
        return gathered.error();
    const std::vector<std::string> words = split(gathered->front(), ' ');

    std::vector<std::unique_ptr<Socket>> sockets;
    bool isComplete = words.size() == 3;
    if (isComplete && !ranks.isFirst()) {
        meeting = {words[0], words[1], words[2]};
        auto socket = std::make_unique<Socket>(connectTo(meeting));
        isComplete = socket->isOpen() && socket->say(meeting.secret + fmt::format("{:08}", ranks.rank()));
        sockets.push_back(std::move(socket));
    }
    // Who could not connect says so: the first one waits for nobody who does not come.
    const auto missed = ranks.any(!isComplete);
    if (!missed)
        return missed.error();
    if (isComplete && ranks.isFirst() && !*missed) {
        while (isComplete && static_cast<int>(sockets.size()) + 1 < ranks.size()) {
            isComplete = waitFor(listener.descriptor(), POLLIN, 10'000);
            auto socket
                = std::make_unique<Socket>(isComplete ? ::accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC) : -1);
            std::array<char, kSecretBytes + 8> greeting{};
            if (!socket->isOpen() || !socket->hear(greeting) || std::string_view(greeting.data(), kSecretBytes) != meeting.secret)
                continue; // somebody else
            socket->rank = static_cast<int>(parseInteger(std::string_view(greeting.data() + kSecretBytes, 8)).value_or(0));
            sockets.push_back(std::move(socket));
        }
    }
    const auto unwatched = ranks.any(!isComplete || *missed);
    if (!unwatched)
        return unwatched.error();
    if (*unwatched)
        sockets.clear();
    return std::unique_ptr<RankWatch>(new RankWatch(ranks, std::move(sockets)));
}

RankWatch::RankWatch(Ranks& ranks, std::vector<std::unique_ptr<Socket>> sockets)
    : m_ranks(ranks)
    , m_sockets(std::move(sockets))
{
    if (!m_sockets.empty() && ::pipe(m_wake) == 0)
        m_thread = std::thread([this] { watch(); });
}

RankWatch::~RankWatch()
{
    if (m_thread.joinable()) {
        static_cast<void>(::write(m_wake[1], "x", 1) == 1);
        m_thread.join();
    }
    if (!m_hasReported)
        sendAll(m_ranks.failure() ? kEnded : kFarewell);
    for (const int end : m_wake) {
        if (end >= 0)
            ::close(end);
    }
}

void RankWatch::sendAll(char word)
{
    for (const auto& socket : m_sockets) {
        if (socket->isOpen())
            socket->say(std::string(1, word));
    }
}

void RankWatch::report(const Problems& problems)
{
    if (m_sockets.empty() || m_hasReported)
        return;
    if (m_ranks.isFirst()) {
        m_hasReported = true;
        sendAll(kEnded);
        return;
    }
    if (m_ranks.failure()) { // the first one has heard, or is gone
        if (!m_ranks.speaks())
            waitForFirst();
        return;
    }
    m_hasReported = true;
    const Socket& first = *m_sockets.front();
    first.say(std::string(1, kFailed) + written(problems));
    ::shutdown(first.descriptor(), SHUT_WR);
    constexpr auto kPatience = std::chrono::seconds(5);
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!m_ranks.failure() && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    waitForFirst();
}

/// Until the first one has ended, for a few seconds, and a moment for the second one, which speaks if the first one was lost: the launcher ends all others as soon as one has ended with an error, and twice asked to
/// end, the first one would not get to speak. By then nobody else reads the connection.
void RankWatch::waitForFirst() const
{
    constexpr int kMilliseconds = 3000;
    const int descriptor = m_sockets.front()->descriptor();
    char ignored = 0;
    while (waitFor(descriptor, POLLIN, kMilliseconds) && ::recv(descriptor, &ignored, 1, MSG_DONTWAIT) > 0) { }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
}

void RankWatch::lose(int rank)
{
    if (rank == 0)
        m_ranks.firstIsLost();
    m_ranks.raise({"MW1551", fmt::format("{} was lost: its process ended without a message", m_ranks.nameOf(rank)),
        "find out why it ended (killed for its memory? a machine that went down?), and start the job again"});
}

/// False when the connection says no more.
bool RankWatch::readFrom(std::size_t at)
{
    Socket& socket = *m_sockets[at];
    std::array<char, 4096> bytes{};
    const ssize_t got = ::recv(socket.descriptor(), bytes.data(), bytes.size(), 0);
    if (got > 0) {
        socket.heard.append(bytes.data(), static_cast<std::size_t>(got));
        if (socket.heard.front() == kEnded)
            m_ranks.raise({"MW1551", "the job was ended by its first rank", "see its messages"});
        return socket.heard.front() == kFailed; // the rest of what it says is to come
    }
    if (!socket.heard.empty() && socket.heard.front() == kFailed)
        m_ranks.raise(readProblem(std::string_view(socket.heard).substr(1), m_ranks.nameOf(socket.rank)));
    else
        lose(socket.rank);
    return false;
}

void RankWatch::watch()
{
    std::vector<bool> isWatched(m_sockets.size(), true);
    for (;;) {
        std::vector<pollfd> entries = {{m_wake[0], POLLIN, 0}};
        for (std::size_t i = 0; i < m_sockets.size(); ++i)
            entries.push_back({isWatched[i] ? m_sockets[i]->descriptor() : -1, POLLIN, 0});
        if (::poll(entries.data(), entries.size(), -1) < 0)
            continue;
        if (entries.front().revents != 0)
            return;
        for (std::size_t i = 0; i < m_sockets.size(); ++i) {
            if (entries[i + 1].revents == 0)
                continue;
            const bool hadFailed = m_ranks.failure().has_value();
            isWatched[i] = readFrom(i);
            if (m_ranks.isFirst() && !hadFailed && m_ranks.failure())
                sendAll(kEnded);
        }
    }
}

} // namespace meshwright
