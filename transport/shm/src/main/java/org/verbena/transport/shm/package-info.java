/**
 * RDMA between processes of one host and one user, through shared memory. {@link
 * org.verbena.transport.shm.ShmProvider} is found by {@link java.util.ServiceLoader}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.shm;
