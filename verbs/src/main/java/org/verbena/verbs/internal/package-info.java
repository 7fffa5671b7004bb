/** What Verbena's module of raw packets shares with this one. Exported only to that module. */
package org.verbena.verbs.internal;
