// Which addresses count as public, one of every kind and both edges of the large blocks.
#include <arpa/inet.h>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "web/address.h"

namespace spool::test {

namespace {

/// The kind under which `text` is refused, empty if it is public.
std::string kind(const std::string& text) {
    sockaddr_storage storage{};
    if (text.find(':') == std::string::npos) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        EXPECT_EQ(inet_pton(AF_INET, text.c_str(), &address.sin_addr), 1) << text;
        std::memcpy(&storage, &address, sizeof(address));
    } else {
        sockaddr_in6 address{};
        address.sin6_family = AF_INET6;
        EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), &address.sin6_addr), 1) << text;
        std::memcpy(&storage, &address, sizeof(address));
    }
    const auto refused = refused_address(reinterpret_cast<const sockaddr&>(storage));
    return refused ? refused->kind : std::string();
}

} // namespace

TEST(Address, PublicOnesPass) {
    for (const char* text : {"1.1.1.1",
                             "8.8.8.8",
                             "9.255.255.255",
                             "11.0.0.0",
                             "100.63.255.255",
                             "100.128.0.0",
                             "126.255.255.255",
                             "128.0.0.1",
                             "169.253.255.255",
                             "169.255.0.0",
                             "172.15.255.255",
                             "172.32.0.0",
                             "192.167.255.255",
                             "192.169.0.0",
                             "198.17.255.255",
                             "198.20.0.0",
                             "223.255.255.255",
                             "2606:4700:4700::1111",
                             "2001:4860:4860::8888",
                             "2400:cb00::1",
                             "64:ff9b::8.8.8.8",
                             "2002:808:808::1"}) {
        EXPECT_EQ(kind(text), "") << text;
    }
}

TEST(Address, OthersAreRefusedByTheirKind) {
    const std::vector<std::pair<const char*, const char*>> cases = {
        {"0.0.0.0", "unspecified"},
        {"0.1.2.3", "unspecified"},
        {"10.0.0.0", "private"},
        {"10.255.255.255", "private"},
        {"100.64.0.0", "carrier-grade NAT"},
        {"100.127.255.255", "carrier-grade NAT"},
        {"127.0.0.1", "loopback"},
        {"127.255.255.255", "loopback"},
        {"168.63.129.16", "cloud metadata"},
        {"169.254.169.254", "link-local"},
        {"172.16.0.0", "private"},
        {"172.31.255.255", "private"},
        {"192.0.2.1", "documentation"},
        {"192.168.0.1", "private"},
        {"198.19.255.255", "benchmark"},
        {"224.0.0.1", "multicast"},
        {"255.255.255.255", "reserved"},
        {"::", "unspecified"},
        {"::1", "loopback"},
        {"::ffff:8.8.8.8", "IPv4-mapped"},
        {"::8.8.8.8", "IPv4-compatible"},
        {"64:ff9b::10.0.0.1", "private (in NAT64)"},
        {"64:ff9b:1::1", "reserved"},
        {"2002:7f00:1::", "loopback (in 6to4)"},
        {"2002:a00:1::1", "private (in 6to4)"},
        {"2001::1", "Teredo"},
        {"2001:db8::1", "documentation"},
        {"fc00::1", "unique-local"},
        {"fd00:ec2::254", "unique-local"},
        {"fe80::1", "link-local"},
        {"febf::1", "link-local"},
        {"fec0::1", "site-local"},
        {"ff02::1", "multicast"},
        {"100::1", "reserved"},
        {"4000::1", "reserved"},
    };
    for (const auto& [text, expected] : cases) {
        EXPECT_EQ(kind(text), expected) << text;
    }
}

TEST(Address, OtherFamiliesAreRefused) {
    sockaddr address{};
    address.sa_family = AF_UNIX;
    EXPECT_TRUE(refused_address(address).has_value());
}

} // namespace spool::test
