/**
 * Runs the tests tagged {@code lab} in the lab's guest and reports them on the host.
 *
 * <p>{@link org.verbena.it.guest.LabTestEngine} is a JUnit engine. On the host it finds the tests as Jupiter would,
 * boots the guest once with {@link org.verbena.it.guest.QemuGuest}, and replays what
 * {@link org.verbena.it.guest.GuestMain} writes into an event log while it runs them there with Jupiter itself.
 */
@NullMarked
package org.verbena.it.guest;

import org.jspecify.annotations.NullMarked;
