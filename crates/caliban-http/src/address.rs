//! Which addresses belong to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address outside the public internet is; `None` for a public one.
pub fn special_use(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("unspecified"),
        [127, ..] => Some("loopback"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("private"),
        [169, 254, ..] => Some("link-local"),
        [100, 64..=127, ..] => Some("carrier-grade NAT"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Some("documentation"),
        [198, 18..=19, ..] => Some("benchmarking"),
        [192, 0, 0, _] | [192, 88, 99, _] | [240..=255, ..] => Some("reserved"),
        [224..=239, ..] => Some("multicast"),
        // The one address of a public block that only answers machines of that cloud, about themselves.
        [168, 63, 129, 16] => Some("cloud metadata"),
        _ => None,
    }
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("unspecified"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("loopback"),
        [0, 0, 0, 0, 0, 0xffff, ..] => Some("IPv4-mapped"),
        [0, 0, 0, 0, ..] => Some("IPv4-compatible"),
        // A gateway to IPv4: as good as the address it leads to.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            special_v4(Ipv4Addr::new(a, b, c, d))
        }
        [0x64, 0xff9b, 1, ..] => Some("private translation"),
        [0x100, 0, 0, ..] => Some("discard"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("documentation"),
        // Tunnels that carry an IPv4 address, and other protocol assignments.
        [0x2001, 0..=0x1ff, ..] | [0x2002 | 0x5f00, ..] => Some("reserved"),
        [0xfc00..=0xfdff, ..] => Some("private"),
        [0xfe80..=0xfebf, ..] => Some("link-local"),
        [0xfec0..=0xfeff, ..] => Some("site-local"),
        [0xff00..=0xffff, ..] => Some("multicast"),
        // Only this block is given out for the public internet.
        [0x2000..=0x3fff, ..] => None,
        _ => Some("reserved"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("0.0.0.0", Some("unspecified"))]
    #[case("127.0.0.1", Some("loopback"))]
    #[case("10.1.2.3", Some("private"))]
    #[case("172.15.255.255", None)]
    #[case("172.16.0.0", Some("private"))]
    #[case("172.31.255.255", Some("private"))]
    #[case("172.32.0.0", None)]
    #[case("192.168.0.1", Some("private"))]
    #[case("169.254.169.254", Some("link-local"))]
    #[case("100.63.255.255", None)]
    #[case("100.64.0.1", Some("carrier-grade NAT"))]
    #[case("192.0.2.1", Some("documentation"))]
    #[case("203.0.113.9", Some("documentation"))]
    #[case("198.19.0.1", Some("benchmarking"))]
    #[case("224.0.0.1", Some("multicast"))]
    #[case("255.255.255.255", Some("reserved"))]
    #[case("168.63.129.16", Some("cloud metadata"))]
    #[case("168.63.129.17", None)]
    #[case("8.8.8.8", None)]
    #[case("::", Some("unspecified"))]
    #[case("::1", Some("loopback"))]
    #[case("::ffff:10.0.0.1", Some("IPv4-mapped"))]
    #[case("::ffff:8.8.8.8", Some("IPv4-mapped"))]
    #[case("::7f00:1", Some("IPv4-compatible"))]
    #[case("64:ff9b::7f00:1", Some("loopback"))]
    #[case("64:ff9b::808:808", None)]
    #[case("fd00::1", Some("private"))]
    #[case("fe80::1", Some("link-local"))]
    #[case("ff02::1", Some("multicast"))]
    #[case("2001:db8::1", Some("documentation"))]
    #[case("2002:7f00:1::", Some("reserved"))]
    #[case("2001:0:1::", Some("reserved"))]
    #[case("2606:4700:4700::1111", None)]
    #[case("4000::1", Some("reserved"))]
    fn addresses_are_classified(#[case] address: &str, #[case] expected: Option<&str>) {
        assert_eq!(special_use(address.parse().unwrap()), expected);
    }
}
