/** Waiting for descriptors on Linux: epoll and eventfd, straight from the C library. */
package org.verbena.transport.verbs.epoll;
