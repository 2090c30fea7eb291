// Which addresses a request from the outside may be sent to: public ones only.
#pragma once

#include <netinet/in.h>
#include <optional>
#include <string>
#include <sys/socket.h>

namespace spool {

struct RefusedAddress {
    std::string address; ///< as text, "127.0.0.1"
    std::string kind;    ///< why: "loopback", "private", "link-local", ...
};

/// Nothing if `address` (IPv4 or IPv6) is a public unicast one. Refused, by the registries of RFC 6890:
/// loopback, private (RFC 1918), carrier-grade NAT, link-local (where clouds keep their metadata services),
/// unique-local, multicast, unspecified, documentation and reserved ones; IPv6 addresses that wrap an IPv4
/// one: mapped, compatible and Teredo always, NAT64 and 6to4 if what they wrap is refused. Other families are
/// refused.
std::optional<RefusedAddress> refused_address(const sockaddr& address);

/// The port of an IPv4 or IPv6 address, 0 for others.
in_port_t port_of(const sockaddr& address);

} // namespace spool
