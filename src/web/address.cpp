#include "web/address.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

namespace spool {

namespace {

struct Block {
    std::array<uint8_t, 16> prefix;
    int bits;
    const char* kind;
};

constexpr auto v4_blocks = std::to_array<Block>({
    {{0}, 8, "unspecified"},
    {{10}, 8, "private"},
    {{100, 64}, 10, "carrier-grade NAT"},
    {{127}, 8, "loopback"},
    {{168, 63, 129, 16}, 32, "cloud metadata"},
    {{169, 254}, 16, "link-local"},
    {{172, 16}, 12, "private"},
    {{192, 0, 0}, 24, "reserved"},
    {{192, 0, 2}, 24, "documentation"},
    {{192, 88, 99}, 24, "6to4 relay"},
    {{192, 168}, 16, "private"},
    {{198, 18}, 15, "benchmark"},
    {{198, 51, 100}, 24, "documentation"},
    {{203, 0, 113}, 24, "documentation"},
    {{224}, 4, "multicast"},
    {{240}, 4, "reserved"},
});

// What is public lies in 2000::/3; 64:ff9b::/96 is looked into first.
constexpr auto v6_blocks = std::to_array<Block>({
    {{}, 128, "unspecified"},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, "loopback"},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF}, 96, "IPv4-mapped"},
    {{}, 96, "IPv4-compatible"},
    {{0x20, 0x01, 0x00, 0x00}, 32, "Teredo"},
    {{0x20, 0x01, 0x00}, 23, "reserved"},
    {{0x20, 0x01, 0x0D, 0xB8}, 32, "documentation"},
    {{0x3F, 0xFF}, 20, "documentation"},
    {{0xFC}, 7, "unique-local"},
    {{0xFE, 0x80}, 10, "link-local"},
    {{0xFE, 0xC0}, 10, "site-local"},
    {{0xFF}, 8, "multicast"},
});

bool starts_with(std::span<const uint8_t> bytes, std::span<const uint8_t> prefix, int bits) {
    const auto whole = static_cast<size_t>(bits / 8);
    const int rest = bits % 8;
    return std::ranges::equal(bytes.first(whole), prefix.first(whole)) &&
           (rest == 0 || ((bytes[whole] ^ prefix[whole]) >> (8 - rest)) == 0);
}

const char* kind_of(std::span<const uint8_t> bytes, std::span<const Block> blocks) {
    const auto found = std::ranges::find_if(
        blocks, [&](const Block& block) { return starts_with(bytes, block.prefix, block.bits); });
    return found == blocks.end() ? nullptr : found->kind;
}

std::string wrapped(const char* kind, const char* wrapper) {
    return kind == nullptr ? std::string() : std::string(kind) + " (in " + wrapper + ")";
}

/// Empty if the address is public.
std::string v6_kind(std::span<const uint8_t, 16> bytes) {
    constexpr std::array<uint8_t, 12> nat64 = {0x00, 0x64, 0xFF, 0x9B};
    constexpr std::array<uint8_t, 2> six_to_four = {0x20, 0x02};
    if (starts_with(bytes, nat64, 96)) {
        return wrapped(kind_of(bytes.subspan(12, 4), v4_blocks), "NAT64");
    }
    if (starts_with(bytes, six_to_four, 16)) {
        return wrapped(kind_of(bytes.subspan(2, 4), v4_blocks), "6to4");
    }
    if (const char* kind = kind_of(bytes, v6_blocks)) {
        return kind;
    }
    return (bytes[0] & 0xE0U) == 0x20 ? "" : "reserved";
}

template <typename Address>
Address read_as(const sockaddr& address) {
    Address copy{};
    std::memcpy(&copy, &address, sizeof(copy));
    return copy;
}

} // namespace

std::optional<RefusedAddress> refused_address(const sockaddr& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    std::string kind;
    if (address.sa_family == AF_INET) {
        const auto v4 = read_as<sockaddr_in>(address);
        std::array<uint8_t, 4> bytes{};
        std::memcpy(bytes.data(), &v4.sin_addr, bytes.size());
        inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
        if (const char* found = kind_of(bytes, v4_blocks)) {
            kind = found;
        }
    } else if (address.sa_family == AF_INET6) {
        const auto v6 = read_as<sockaddr_in6>(address);
        std::array<uint8_t, 16> bytes{};
        std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
        inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
        kind = v6_kind(bytes);
    } else {
        return RefusedAddress{"an address of another kind", "neither IPv4 nor IPv6"};
    }
    return kind.empty() ? std::nullopt : std::optional(RefusedAddress{text.data(), kind});
}

in_port_t port_of(const sockaddr& address) {
    if (address.sa_family == AF_INET) {
        return ntohs(read_as<sockaddr_in>(address).sin_port);
    }
    return address.sa_family == AF_INET6 ? ntohs(read_as<sockaddr_in6>(address).sin6_port) : in_port_t{0};
}

} // namespace spool
