package org.verbena.verbs.address;

/**
 * An entry of a port's GID table.
 *
 * <p>Source: ibv_query_gid_ex(3)
 *
 * @param gid the identifier
 * @param index its place in the table, by which address vectors name it
 * @param port 1 or more
 * @param type the packet format; it decides between RoCE v1 and v2
 * @param networkInterfaceIndex the interface it belongs to, as if_nametoindex(3); 0 if none
 */
public record GidEntry(Gid gid, int index, int port, GidType type, int networkInterfaceIndex) {}
