package org.verbena.transport.shm.ffm;

/**
 * Which file it is, whatever descriptors and names it has.
 *
 * @param device that it is on
 * @param inode its number there
 */
public record FileIdentity(long device, long inode) {}
