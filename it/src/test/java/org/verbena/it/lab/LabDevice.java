package org.verbena.it.lab;

/** The guest's RDMA devices, as {@code it/lab/jobs/devices} sets them up. */
public enum LabDevice {
    /** Soft RoCEv2. */
    RXE("rxe0", "roce", "10.77.0.1", "fd77::1", "10.77.0.250"),
    /** Soft iWARP. */
    SIW("siw0", "iwarp", "10.78.0.1", "fd78::1", "10.78.0.250");

    private final String deviceName;
    private final String interfaceName;
    private final String address;
    private final String ipv6Address;
    private final String silentAddress;

    LabDevice(String deviceName, String interfaceName, String address, String ipv6Address, String silentAddress) {
        this.deviceName = deviceName;
        this.interfaceName = interfaceName;
        this.address = address;
        this.ipv6Address = ipv6Address;
        this.silentAddress = silentAddress;
    }

    /** The RDMA device's name. */
    public String deviceName() {
        return deviceName;
    }

    /** The network interface that it is on. */
    public String interfaceName() {
        return interfaceName;
    }

    /** Its IPv4 address: for listening and for connecting. */
    public String address() {
        return address;
    }

    /** Its IPv6 address. */
    public String ipv6Address() {
        return ipv6Address;
    }

    /** An address in its network that nobody has. */
    public String silentAddress() {
        return silentAddress;
    }
}
